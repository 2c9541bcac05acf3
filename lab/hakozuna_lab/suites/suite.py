# SPDX-License-Identifier: Apache-2.0
"""What a suite of other people's tests is to `hz suites`: how it is got ready, what runs it, and how its output is
read. Costs nothing by itself; what a suite costs stands in its module."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab import LabError

PASSED, FAILED, SKIPPED, MISSING = "passed", "failed", "skipped", "missing"


class AbsentError(LabError):
    """The suite cannot be had here, and why."""


@dataclass(frozen=True)
class Case:
    state: str  # passed, failed or skipped
    unit: str = ""  # what the suite is told to run it again without the rest; "": it cannot be told


@dataclass(frozen=True)
class Ready:
    """A suite that can be run."""

    version: str
    folder: Path  # where it is run


@dataclass(frozen=True)
class Turn:
    """One run: with our library or without, of all tests or of some units."""

    library: Path | None
    work: Path  # an empty folder, of this run alone
    units: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """What is set for a suite is the same in both turns, but for the preload."""
        dropped = ("HZ_", "PYTHON", "LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES", "PG", "MAKEFLAGS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        kept.update(LC_ALL="C.UTF-8", TZ="UTC", TMPDIR=str(self.work), **self.preload())
        return kept

    def preload(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library)} if self.library else {}


def unprivileged(user: str, folder: Path) -> list[str]:
    """What stands before a command that root may not run: it is run as that user, whose the folder is then."""
    script = f'chown -R {user} "$0" && exec setpriv --reuid={user} --regid="$(id -g {user})" --clear-groups "$@"'
    return [] if os.getuid() else ["sh", "-c", script, str(folder)]


@dataclass(frozen=True)
class Suite:
    name: str
    about: str  # whose tests they are, and which
    prepare: Callable[[Path], Ready]  # into that folder; a second call finds what the first one made
    command: Callable[[Ready, Turn], Sequence[str]]
    read: Callable[[str], Mapping[str, Case]]
    limit: float  # seconds of one turn: what takes longer hangs
