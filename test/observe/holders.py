# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: processes to look into, and `hz`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hakozuna_observe
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["HZ_BUILD_DIR"])
LINES = os.environ["HZ_TEST_LINES"].split()
QUICK = os.environ.get("HZ_TEST_TIER") == "quick"

# In the order of hz_stats_t, as its header has it.
_HEADER = (ROOT / "include/hakozuna/hakozuna.h").read_text()
_STRUCT = _HEADER[_HEADER.index("typedef struct hz_stats_t") : _HEADER.index("} hz_stats_t;")]
FIELDS = [name for row in re.findall(r"uint64_t ([^;]+);", _STRUCT) for name in row.replace(",", " ").split()]


def library(line: str) -> Path:
    """The drop-in library of a line of this build."""
    return BUILD / f"libhakozuna-{line}.so"


class Held:
    """A process of holder.c, and what it says about itself."""

    def __init__(self, line: str, mode: str, **variables: str) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
        self.process = subprocess.Popen(
            [BUILD / "test/observe/hz-holder", mode],
            env=environment | {"LD_PRELOAD": str(library(line))} | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid, _ = self.stats()  # it is at rest, and in `fork` its child's

    def stats(self, *, trimmed: bool = False) -> tuple[int, dict[str, int]]:
        """The number of the process that answers, and its hz_stats; after a malloc_trim, if `trimmed`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("t\n" if trimmed else "\n")
        self.process.stdin.flush()
        pid, *values = (int(word) for word in self.process.stdout.readline().split())
        return pid, dict(zip(FIELDS, values, strict=True))

    def end(self) -> None:
        """It is gone then."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(60) == 0


class Holders:
    """Starts them, and ends them with the test."""

    def __init__(self) -> None:
        self._all: list[Held] = []

    def __call__(self, line: str, mode: str = "rest", **variables: str) -> Held:
        self._all.append(Held(line, mode, **variables))
        return self._all[-1]

    def end(self) -> None:
        """All that live."""
        for one in self._all:
            if one.process.poll() is None:
                one.end()


@pytest.fixture
def hold() -> Iterator[Holders]:
    """hold(line, mode, VARIABLE="value") starts a process."""
    holders = Holders()
    yield holders
    holders.end()


def hz(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The launcher, with this build."""
    command = [str(ROOT / "hz"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def as_other_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`hz` of a user who has nothing to say."""
    return as_user(65534, *arguments)


def as_user(user: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`hz` without the launcher, of a user without rights."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    package = str(Path(hakozuna_observe.__file__).parents[1])
    answer = subprocess.run(
        [
            "setpriv",
            f"--reuid={user}",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "/usr/bin/python3",
            "-m",
            "hakozuna_observe",
            *arguments,
        ],
        env={"PYTHONPATH": package, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named" in answer.stderr:
        pytest.skip("the tree cannot be read by others")
    return answer
