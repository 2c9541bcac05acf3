# SPDX-License-Identifier: Apache-2.0
"""Redis's own suite, `runtest`, with the distribution's programs: they must be of the same version as the tests. Some
ten minutes a turn, most of them waiting."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import FAILED, PASSED, SKIPPED, AbsentError, Case, Ready, Suite, Turn

WORDS = {"ok": PASSED, "err": FAILED, "exception": FAILED, "timeout": FAILED, "skip": SKIPPED, "ignore": SKIPPED}
LINE = re.compile(r"^\[(\w+)\]: (.*?)(?: \(\d+ ms\))?(?: in tests/(\S+)\.tcl)?$")
PROGRAMS = ("redis-server", "redis-cli", "redis-benchmark", "redis-sentinel", "redis-check-aof", "redis-check-rdb")


def prepare(cache: Path) -> Ready:
    sources.need_program("tclsh")
    version = sources.installed_version("redis-server")
    if not version:
        raise AbsentError("redis-server is not here as a package of the distribution")
    got = sources.debian(cache, "redis", version)
    for name in PROGRAMS:
        there = got.folder / "src" / name
        if not there.is_symlink():
            there.symlink_to(shutil.which(name) or sources.need_program("redis-server"))
    return Ready(version, got.folder)


def command(ready: Ready, turn: Turn) -> list[str]:
    """Without what is about the machine's size. Four clients, of which most wait."""
    words = [str(ready.folder / "runtest"), "--clients", "4", "--timeout", "600", "--tags", "-large-memory"]
    for unit in turn.units:
        words += ["--single", unit]
    return words


def read(text: str) -> Mapping[str, Case]:
    """A name that occurs twice is failed if one of them is."""
    tests: dict[str, Case] = {}
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        found = LINE.match(line)
        if found and found[1] in WORDS:
            known = tests.get(found[2])
            if known is None or known.state != FAILED:
                tests[found[2]] = Case(WORDS[found[1]], found[3] or "")
    return tests


REDIS = Suite("redis", "Redis's runtest, but for what needs much memory", prepare, command, read, 5400)
