# SPDX-License-Identifier: Apache-2.0
"""SQLite's own tests: `veryquick`, and the malloc tests, in which every call of malloc fails once. A file of tests is a
test here. The testfixture that runs them is built of the distribution's sources: minutes of a compiler at first; a turn
takes some ten minutes of an idle processor."""

import re
from collections.abc import Mapping
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import FAILED, PASSED, Case, Ready, Suite, Turn, unprivileged

RUN_OF_A_FILE = re.compile(r"^Time: (\S+\.test) \d+ ms$")
WRONG = re.compile(r"^! (\S+) expected:|^(Error): |^(.*)\.\.\.\s*$\n! ")
MALLOC = ("malloc.test", "malloc[3-9].test", "malloc[A-M].test")
VERYQUICK = "veryquick.test"
SECONDS = 3000  # of one file


def prepare(cache: Path) -> Ready:
    got = sources.debian(cache, "sqlite3", sources.installed_version("sqlite3"))
    built, log = got.folder.parent / "build", got.folder.parent / "build.log"
    if not (built / "testfixture").exists():
        built.mkdir(exist_ok=True)
        configure = [str(got.folder / "configure"), "--disable-shared", "CFLAGS=-O1"]
        sources.must("SQLite's configure", configure, log, built)
        sources.must("the build of testfixture", ["make", "testfixture"], log, built)
    return Ready(got.version, got.folder)


def command(ready: Ready, turn: Turn) -> list[str]:
    tests = ready.folder / "test"
    named = [tests / unit for unit in turn.units]
    files = named or [tests / VERYQUICK, *(file for name in MALLOC for file in sorted(tests.glob(name)))]
    fixture = str(ready.folder.parent / "build/testfixture")
    user = unprivileged("nobody", turn.work)  # veryquick is also about what may not be written
    return [*user, *sources.one_by_one(turn.work, SECONDS, fixture, files)]


def read(text: str) -> Mapping[str, Case]:
    """veryquick tells of each file's time when it is done; a file that is run alone, of its end. What went wrong before
    such a line belongs to its file."""
    tests: dict[str, Case] = {}
    alone, wrong = "", False

    def note(name: str, failed: bool) -> None:
        known = tests.get(name)
        tests[name] = Case(FAILED if failed or (known and known.state == FAILED) else PASSED, name)

    for line in text.splitlines():
        if line.startswith("--- /"):
            alone, wrong = Path(line[4:]).name, False
            tests[alone] = Case(PASSED, alone)
        elif line.startswith("--- exit code"):
            note(alone, True)
        elif found := RUN_OF_A_FILE.match(line):
            note(found[1], wrong)
            wrong = False
        elif line.startswith("! ") or re.match(r"^Error in \S+:", line):
            wrong = True
    return tests


SQLITE = Suite("sqlite", "SQLite's veryquick and its malloc tests", prepare, command, read, 4 * 3600)
