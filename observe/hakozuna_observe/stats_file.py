# SPDX-License-Identifier: Apache-2.0
"""The file of a process that may not be looked into: its statistics line, as it wrote it itself (HZ_STATS_DIR).

It is replaced as a whole, at most once a second, while something changes; the process removes it when it exits, and one
that is killed leaves it. So whoever reads it is told how old it is.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from hakozuna_observe.process import UnseenError, one_line, open_regular, shortened

_FIRST = "hz: stats "
_WORDS = ("line", "version", "pid", "program")
_MOST_BYTES = 65536
_MOST_DIGITS = 20  # of 64 bits


@dataclass
class StatsFile:
    """`stats` has the names of hz_stats; `at` and `age` are seconds, since the epoch and until now."""

    file: str
    pid: int
    program: str
    line: str
    release: str
    at: float
    age: float
    stats: dict[str, int]


def path_in(folder: Path, pid: int) -> Path:
    """Where a process of that number writes; the number is the one that it has itself."""
    return folder / f"hakozuna.{pid}.stats"


def _is_number(value: str) -> bool:
    return value.isdecimal() and len(value) <= _MOST_DIGITS


def read(path: Path) -> StatsFile:
    """`UnseenError` if there is none, or it is none."""
    try:
        with open_regular(path) as file:
            text = file.read(_MOST_BYTES).decode("ascii", errors="replace")
            written = os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError) as error:
        raise UnseenError(
            f"{shortened(str(path))}: {error.strerror if isinstance(error, OSError) else error}"
        ) from None
    fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
    numbers = {key: value for key, value in fields.items() if key not in _WORDS and _is_number(value)}
    missing = [word for word in _WORDS if word not in fields]
    if not text.startswith(_FIRST) or not text.endswith("\n") or missing or "bytes_live" not in numbers:
        raise UnseenError(f"{path} is no statistics of a process")
    if not _is_number(fields["pid"]):
        raise UnseenError(f"{path} is no statistics of a process")
    return StatsFile(
        file=str(path),
        pid=int(fields["pid"]),
        program=one_line(fields["program"]),
        line=one_line(fields["line"]),
        release=one_line(fields["version"]),
        at=written,
        age=max(time.time() - written, 0.0),
        stats={key: int(value) for key, value in numbers.items()},
    )
