# SPDX-License-Identifier: Apache-2.0
"""The man pages: hz(1) has the commands and options that `hz help` and each command's --help have, and hakozuna(3) the
functions of the header, the variables of doc/knobs.md, and the codes of errors; both ways. mandoc and man find no
fault. Called by ctest; a second."""

import re
import shutil
import subprocess
import unittest

from packages import ROOT, command

MAN = ROOT / "doc/man"
HZ = ROOT / "hz"
# Commands whose --help needs no environment of python's, which the lab's do.
EXPLAINED = ("run", "tune", "doctor", "stat", "ctl", "prof", "exporter", "test", "coverage", "programs", "endure")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def text(path):
    return path.read_text(encoding="utf-8")


def section(page, title):
    return re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", page, re.MULTILINE | re.DOTALL)[1]


def prototype(result, name, arguments):
    """In one spelling: spaces only between words."""
    joined = f"{result} {name}({','.join(arguments)})"
    return re.sub(r" *([*(),]) *", r"\1", " ".join(joined.split()))


class Launcher(unittest.TestCase):
    page = text(MAN / "hz.1")

    def test_options(self):
        said = command(HZ, "help") + "".join(command(HZ, name, "--help") for name in EXPLAINED)
        self.assertEqual(
            {
                name
                for row in re.findall(r"^\.It Fl (-.*)", section(self.page, "OPTIONS"), re.MULTILINE)
                for name in re.findall(r"(?:^| )-([a-z][a-z-]*)", row)
            },
            set(OPTION.findall(said)),
        )

    def test_synopsis_has_no_option_of_its_own(self):
        listed = set(re.findall(r"Fl -([a-z][a-z-]*)", section(self.page, "OPTIONS")))
        self.assertLessEqual(set(re.findall(r"Fl -([a-z][a-z-]*)", section(self.page, "SYNOPSIS"))), listed)

    def test_commands(self):
        usage = command(HZ, "help").split("\n\n")[0]
        said = {
            name
            for names in re.findall(r"^(?:usage:|      ) hz ([a-z|]+)", usage, re.MULTILINE)
            for name in names.split("|")
        }
        described = re.findall(r"^\.It Ic ([a-z ,]+?)(?: Fl .*)?$", section(self.page, "DESCRIPTION"), re.MULTILINE)
        self.assertEqual({name for names in described for name in names.split(" , ")}, said)

    def test_completion_has_the_commands(self):
        said = command(HZ, "completion", "words", "").split()
        described = re.findall(r"^\.It Ic ([a-z ,]+?)(?: Fl .*)?$", section(self.page, "DESCRIPTION"), re.MULTILINE)
        self.assertEqual(set(said), {name for names in described for name in names.split(" , ")})


class Library(unittest.TestCase):
    page = text(MAN / "hakozuna.3")
    header = text(ROOT / "include/hakozuna/hakozuna.h")

    def test_functions(self):
        declared = {
            prototype(result, name, arguments.split(","))
            for result, name, arguments in re.findall(r"^HZ_API (.*?)(\w+)\(([^)]*)\);", self.header, re.MULTILINE)
        }
        shown = set()
        for result, name, rest in re.findall(
            r"^\.Ft (.*)\n\.Fn (\w+) (.*)$", section(self.page, "SYNOPSIS"), re.MULTILINE
        ):
            arguments = re.findall(r'"([^"]*)"', rest) or [rest]
            shown.add(prototype(result.strip('"'), name, arguments))
        self.assertEqual(shown, declared)
        self.assertEqual(len(shown), 32)

    def test_names(self):
        declared = re.findall(r"^HZ_API .*?(\w+)\(", self.header, re.MULTILINE)
        self.assertEqual(
            sorted(re.findall(r"^\.Nm (hz_\w+)", section(self.page, "NAME"), re.MULTILINE)), sorted(declared)
        )

    def test_each_function_is_described(self):
        described = set(re.findall(r"^\.Fn (hz_\w+)", section(self.page, "DESCRIPTION"), re.MULTILINE))
        self.assertEqual(described, set(re.findall(r"^HZ_API .*?(\w+)\(", self.header, re.MULTILINE)))

    def test_variables_and_their_defaults(self):
        rows = re.findall(r"^\| `(HZ_\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|", text(ROOT / "doc/knobs.md"), re.MULTILINE)
        shown = dict(
            re.findall(r"^\.It Ev (HZ_\w+)\n(.*(?:\n[^.].*)*)", section(self.page, "ENVIRONMENT"), re.MULTILINE)
        )
        self.assertEqual(list(shown), [name for name, _, _ in rows])
        for name, _, default in rows:
            if default.strip():
                self.assertIn(
                    f"({default.strip()}".replace("a container's limit", "the limit of a container"), shown[name]
                )

    def test_codes(self):
        codes = dict(re.findall(r"^\| (E\d\d) ([a-z-]+) \|", text(ROOT / "doc" / "errors.md"), re.MULTILINE))
        self.assertEqual(dict(re.findall(r"(E\d\d)\s+([a-z-]+-[a-z]+)", section(self.page, "DIAGNOSTICS"))), codes)


class Both(unittest.TestCase):
    def test_mandoc_finds_no_fault(self):
        if shutil.which("mandoc") is None:
            self.skipTest("mandoc is not installed")
        for page in sorted(MAN.iterdir()):
            self.assertEqual(command("mandoc", "-T", "lint", "-W", "warning", page), "")

    def test_man_finds_no_fault(self):
        if shutil.which("groff") is None or shutil.which("man") is None:
            self.skipTest("man and groff are not installed")
        for page in sorted(MAN.iterdir()):
            done = subprocess.run(
                ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertEqual(done.stderr, "")
            self.assertGreater(len(done.stdout), 1000)


if __name__ == "__main__":
    unittest.main()
