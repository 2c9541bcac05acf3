# SPDX-License-Identifier: Apache-2.0
"""Runs a program to its end and says how long it took, how much memory it needed, and which malloc it called. For
programs that are no servers, and for measure. The program starts from GNU time, so that its peak is not that of this
python, whose memory a fork would inherit."""

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hakozuna_lab import LabError
from hakozuna_lab.watch import Watch

TIME = Path("/usr/bin/time")

Stream = int | IO[bytes] | None


@dataclass(frozen=True)
class Finished:
    seconds: float
    code: int  # 128 + its number for a signal
    peak_kib: int  # of the processes together, as far as samples tell; at least that of the largest one, exactly
    watch: Watch


def run_watched(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path | None = None,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = None,
    stderr: Stream = None,
) -> Finished:
    if not TIME.is_file():
        raise LabError(f"{TIME} is missing (GNU time, Debian's package time)")
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        timed = [str(TIME), "-q", "-o", report.name, "-f", "%M", *command]
        began = time.perf_counter()
        with (
            subprocess.Popen(timed, env=dict(env), cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr) as process,
            Watch(process.pid, tool=str(TIME.resolve())) as watch,
        ):
            code = process.wait()
            seconds = time.perf_counter() - began
        return Finished(seconds, code, max(watch.peak_kib, int(report.read())), watch)
