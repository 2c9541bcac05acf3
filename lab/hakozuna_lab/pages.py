# SPDX-License-Identifier: Apache-2.0
"""The tables of a page of results: the files of data that it links, which hold what is too long for a page, and those
that stand in it. `hz report PAGE.md` draws them (overview.py, aftermath.py)."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

Table = list[list[str]]  # the first row has the headings

LINK = re.compile(r"\]\((rows/[\w.-]+\.csv)\)")


def in_text(text: str) -> Iterator[Table]:
    """Lines that begin with a bar, without the one that separates the headings from the rest."""
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        yield [row for row in rows if set("".join(row)) - set("-: ")]


def tables(page: Path) -> Iterator[Table]:
    text = page.read_text(encoding="utf-8")
    for name in LINK.findall(text):
        with (page.parent / name).open(encoding="utf-8", newline="") as file:
            yield list(csv.reader(file))
    yield from in_text(text)
