# SPDX-License-Identifier: Apache-2.0
"""CPython's whole regression suite, every object a block of malloc's: by test/preload/cpython.py, which `hz endure`
runs too. Some ten minutes a turn on two idle processors."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from hakozuna_lab.paths import ROOT
from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import FAILED, PASSED, SKIPPED, AbsentError, Case, Ready, Suite, Turn

SCRIPT = ROOT / "test/preload/cpython.py"
LINE = re.compile(r"\] (test_\w+) (passed|failed|skipped|crashed|timed out|run no tests|env changed|worker non)")
WORDS = {"passed": PASSED, "run no tests": SKIPPED, "skipped": SKIPPED, "env changed": PASSED}


def prepare(cache: Path) -> Ready:
    """Nothing is fetched: the suite is a package of the distribution's python."""
    python = "/usr/bin/python3"
    if not sources.said([python, "-c", "import test.libregrtest, test.test_list; print('here')"]):
        raise AbsentError(f"{python} has no regression suite (Debian's libpython3-testsuite)")
    return Ready(sources.said([python, "--version"]).removeprefix("Python "), ROOT)


def command(ready: Ready, turn: Turn) -> list[str]:
    script = [sys.executable, "-B", str(SCRIPT), str(turn.library or "-"), *(turn.units or ["--whole"])]
    return [*script, "--once", "served" if turn.library else "plain"]


def read(text: str) -> Mapping[str, Case]:
    """One test a module. Which cases of it failed stands in the log."""
    found = {module: WORDS.get(word, FAILED) for module, word in LINE.findall(text)}
    return {module: Case(state, module) for module, state in found.items()}


CPYTHON = Suite("cpython", "CPython's regression suite, PYTHONMALLOC=malloc", prepare, command, read, 4 * 3600)
