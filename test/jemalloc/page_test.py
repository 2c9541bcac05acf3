# SPDX-License-Identifier: Apache-2.0
"""The tables of doc/jemalloc.md have the names that mallctl answers and the functions that the library exports, both
ways, and what the page says is refused is not answered. Each name of jemalloc 5.3.0 is one or the other. Called by
ctest with the root of the tree; takes a tenth of a second."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


class Page(unittest.TestCase):
    page = text("doc/jemalloc.md")
    rows = re.findall(r'^    \{"([a-z_.%]+)",', text("src/export/jemalloc/control.cpp"), re.MULTILINE)
    names = frozenset(re.sub(r"%[a-z]", "#", row) for row in rows)

    def first_cells(self, page: str) -> set[str]:
        cells = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
        return {re.sub(r"<[a-z]>", "#", name) for cell in cells for name in re.findall(r"`([^`]+)`", cell)}

    def test_names(self) -> None:
        self.assertGreater(len(self.names), 60)
        self.assertEqual(len(self.names), len(self.rows))
        figures = self.page[self.page.index("## Figures") : self.page.index("## Active defragmentation")]
        self.assertEqual(self.first_cells(figures), self.names)

    def test_functions(self) -> None:
        functions = self.page[self.page.index("## Functions") : self.page.index("| flag |")]
        listed = [row for row in text("test/package/exports_jemalloc.txt").split("\n") if row and row[0] != "#"]
        self.assertEqual(self.first_cells(functions), {*listed, "malloc_usable_size"})

    def test_what_is_refused(self) -> None:
        refused = self.page[self.page.index("## What is refused") : self.page.index("## Seen")]
        told = {re.sub(r"<[a-z]>", "#", name) for name in re.findall(r"`([a-z_]+\.[a-z_.<>]+)`", refused)}
        self.assertGreater(len(told), 5)
        self.assertEqual(told & self.names, set())

    def test_every_name_of_jemalloc_is_answered_or_refused(self) -> None:
        theirs = {
            row
            for row in text("test/jemalloc/names.txt").split("\n")
            if row and not row.startswith("# ") and row != "#"
        }
        self.assertGreater(len(theirs), 380)
        refused = self.page[self.page.index("These are all names") : self.page.index("Errors are those of")]
        told = {re.sub(r"<[a-z]>", "#", name) for name in re.findall(r"`([a-z_]+\.[a-z_.<>*]+)`", refused)}
        forms = {name: re.compile(re.escape(name).replace(r"\*", ".*").replace(r"\#", "#")) for name in told}
        covered = {one: {name for name, form in forms.items() if form.fullmatch(one)} for one in theirs}
        self.assertEqual({one for one in theirs - self.names if not covered[one]}, set())
        self.assertEqual({one for one in theirs & self.names if covered[one]}, set())
        self.assertEqual(told, set().union(*covered.values()))


if __name__ == "__main__":
    unittest.main()
