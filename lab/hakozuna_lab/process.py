# SPDX-License-Identifier: Apache-2.0
"""Runs a program to its end and says how long it took, how much memory it needed, and which malloc it called. For
programs that are no servers, and for measure. The program starts from GNU time, so that its peak is not that of this
python, whose memory a fork would inherit."""

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hakozuna_lab import LabError, RunError
from hakozuna_lab.watch import Watch, signal_all, tree

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
    timeout: float | None = None,
) -> Finished:
    """RunError when it takes longer than `timeout` seconds; nothing of it is left then."""
    if not TIME.is_file():
        raise LabError(f"{TIME} is missing (GNU time, Debian's package time)")
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        timed = [str(TIME), "-q", "-o", report.name, "-f", "%M", *command]
        began = time.perf_counter()
        with (
            subprocess.Popen(timed, env=dict(env), cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr) as process,
            Watch(process.pid, tool=str(TIME.resolve())) as watch,
        ):
            code = wait(process, timeout)
            seconds = time.perf_counter() - began
        return Finished(seconds, code, max(watch.peak_kib, int(report.read())), watch)


def wait(process: "subprocess.Popen[bytes]", timeout: float | None) -> int:
    """Returns at once when the process ends: with a timeout, Popen's own wait looks 20 times a second only."""
    ending = os.pidfd_open(process.pid)
    try:
        ended, _, _ = select.select([ending], [], [], timeout)
    finally:
        os.close(ending)
    if not ended:
        signal_all(tree(process.pid), signal.SIGKILL)
        raise RunError(f"no end after {timeout:.0f} s")
    return process.wait()
