# SPDX-License-Identifier: Apache-2.0
"""`hz run --measure`: a program of the user's with and without us, in pairs of runs with the order turned round each
time; its time, its memory, and the proof that we served it: which malloc it called, and, of one more run with
statistics, how much of its memory our heap held. Ctrl-C ends a run, as it would end the program alone, so a
server can be measured too; twice ends the measurement, and the complete pairs are told."""

import json
import os
import shlex
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import IO, Any

from hakozuna_lab import LabError, findings
from hakozuna_lab.contender import Contender
from hakozuna_lab.findings import Measured, Pair, Share
from hakozuna_lab.machine import cpu_times, others_share
from hakozuna_lab.process import run_watched
from hakozuna_lab.watch import signal_all, tree

GRACE_SECONDS = 1.0  # for a second Ctrl-C


class StoppedError(Exception):
    """The user has had enough."""


@dataclass
class Interrupts:
    """Ctrl-C reaches the program by itself; here it is only noted, so that we outlive the program."""

    times: list[float] = field(default_factory=list)  # on the clock of perf_counter

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.times.append(time.perf_counter())
        if len(self.times) == 1:
            print("\nhz: Ctrl-C ends this run; once more ends the measurement", file=sys.stderr)
            return
        ours = tree(os.getpid())[2:]  # but for us and the tool that waits for them
        signal_all(ours, signal.SIGTERM if len(self.times) == 2 else signal.SIGKILL)


@contextmanager
def noting_interrupts() -> Iterator[Interrupts]:
    interrupts = Interrupts()
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Input:
    """What every run reads, from its start; file None is what we have, passed on."""

    file: int | None = None
    start: int = 0

    def rewind(self) -> None:
        if self.file is not None:
            os.lseek(self.file, self.start, os.SEEK_SET)


@contextmanager
def repeatable_input() -> Iterator[Input]:
    """What comes through a pipe is kept first; a terminal is passed on."""
    kind = os.fstat(0).st_mode
    if stat.S_ISREG(kind):
        yield Input(0, os.lseek(0, 0, os.SEEK_CUR))
    elif stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        print("hz: reading the input to its end, for every run to get it…", file=sys.stderr)
        with tempfile.TemporaryFile(buffering=0) as kept:
            while piece := os.read(0, 1 << 20):
                kept.write(piece)
            yield Input(kept.fileno())
    else:
        yield Input()


@dataclass(frozen=True)
class Runs:
    """How the program is run. `log` gets what it writes; None passes that on."""

    command: Sequence[str]
    library: Path
    stdin: Input
    log: IO[bytes] | None

    def pair(self, number: int) -> Pair:
        """Without us and with us; which comes first changes from pair to pair."""
        done = {served: self.run(served, number) for served in ((False, True) if number % 2 == 0 else (True, False))}
        return done[False], done[True]

    def run(self, served: bool, number: int) -> Measured:
        return self.once(f"pair {number + 1}, {'with' if served else 'without'}",
                         environment(self.library if served else None))  # fmt: skip

    def share(self) -> Share | None:
        """Of a run that is not measured: to count slows every call down."""
        with tempfile.TemporaryDirectory() as folder:
            counting = {"HZ_STATS": "json", "HZ_STATS_FILE": f"{folder}/%p"}
            done = self.once("with statistics", environment(self.library) | counting)
            return share_of(done, Path(folder))

    def once(self, title: str, env: dict[str, str]) -> Measured:
        if self.log:
            self.log.write(f"--- {title}\n".encode())
        self.stdin.rewind()
        with noting_interrupts() as interrupts:
            before = cpu_times()
            done = run_watched(self.command, env, stdin=self.stdin.file, stdout=self.log, stderr=self.log)
            share = others_share(before, cpu_times())
            if len(interrupts.times) == 1:
                time.sleep(GRACE_SECONDS)
        if len(interrupts.times) > 1:
            raise StoppedError
        interrupted = interrupts.times[0] - done.watch.started if interrupts.times else None
        return Measured(done.seconds, done.code, done.peak_kib, done.watch, share, interrupted)


def environment(library: Path | None) -> dict[str, str]:
    """The user's own. What `hz` set for this python is taken away; our library comes after what is there."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HZ_LAB_", "HZ_BUILD_DIR"))}
    env.pop("PYTHONPATH", None)
    if theirs := os.environ.get("HZ_LAB_CALLERS_PYTHONPATH"):
        env["PYTHONPATH"] = theirs
    if library:
        env["LD_PRELOAD"] = ":".join(filter(None, [env.get("LD_PRELOAD"), str(library)]))
    return env


def last_line(file: Path) -> dict[str, Any] | None:
    """Of a process that was killed before it had written one there is none."""
    try:
        line = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
    except (IndexError, ValueError):
        return None
    return line if isinstance(line, dict) else None


def share_of(done: Measured, folder: Path) -> Share | None:
    """Of the process that needed most memory and told of itself, in a file named after it."""
    told = {int(file.name): line for file in folder.iterdir() if (line := last_line(file)) is not None}
    seen = {pid: kib for pid, kib in done.watch.own_kib.items() if pid in told}
    if not seen:
        return None
    pid = max(seen, key=seen.__getitem__)
    own = seen[pid]
    if len(done.watch.own_kib) == 1:  # its peak is known exactly, also when it was between two looks
        own = max(own, done.peak_kib - done.watch.files_kib[pid])
    calls = sum(told[pid][f"alloc_{size}"] for size in ("small", "medium", "large"))
    return Share(calls, told[pid]["bytes_peak"] // 1024, own)


def main(command: Sequence[str], line: Contender, pairs: int, log: Path, show: bool) -> int:
    """Returns 1 if exit codes differ between the runs with and without us."""
    assert line.library
    done: list[Pair] = []
    share: Share | None = None
    log.parent.mkdir(parents=True, exist_ok=True)
    with repeatable_input() as stdin, log.open("wb", buffering=0) as written:
        runs = Runs(command, line.library, stdin, None if show else written)
        with suppress(StoppedError, KeyboardInterrupt):
            for number in range(pairs):
                print(f"hz: pair {number + 1} of {pairs}…", file=sys.stderr)
                pair = runs.pair(number)
                findings.refuse_unserved(pair, line.library)
                done.append(pair)
            if not findings.by_hand(done):
                print("hz: once more, with statistics, for the proof…", file=sys.stderr)
                share = replace(runs, log=written).share()
    if not show:
        print(f"hz: what the program wrote is in {log}", file=sys.stderr)
    if not done:
        raise LabError("not one pair of runs is complete")
    print("\n".join(findings.told(shlex.join(command), line.name, done, share)))
    return int(findings.codes_differ(done))
