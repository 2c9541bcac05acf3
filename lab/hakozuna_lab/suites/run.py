# SPDX-License-Identifier: Apache-2.0
"""`hz suites`: other people's test suites with and without us. Called by checks.py with the library and the line. Each
suite is run twice, and the tests that differ once more both ways; a suite that hangs is ended and has failed. Costs the
suites' own time: minutes to hours."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hakozuna_lab import LabError, RunError
from hakozuna_lab.machine import commit, cpu_name, kernel, load, usable_cpus
from hakozuna_lab.peer_build import sha256
from hakozuna_lab.process import run_watched
from hakozuna_lab.suites import SUITES
from hakozuna_lab.suites.suite import FAILED, MISSING, PASSED, SKIPPED, AbsentError, Case, Ready, Suite, Turn
from hakozuna_lab.watch import signal_all, tree

HEAD = ("suite", "version", "result", *(f"{state} {how}" for state in (PASSED, FAILED, SKIPPED)
        for how in ("without", "with")), "seconds without", "with")  # fmt: skip
WHOLE = "(the run itself)"
SHOWN = 40  # names in a list
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Outcome:
    """What came of one turn."""

    tests: dict[str, Case] = field(default_factory=dict)
    seconds: float = 0.0
    served: int = 0  # programs that called our malloc
    unserved: tuple[str, ...] = ()  # and those that called another, or cannot call any but their own
    said: tuple[str, ...] = ()  # lines of ours

    def state(self, name: str) -> str:
        return self.tests[name].state if name in self.tests else MISSING

    def count(self, state: str) -> int:
        return sum(test.state == state for test in self.tests.values())


@dataclass
class Row:
    """What was seen of a suite."""

    name: str
    version: str = "-"
    parts: tuple[str, ...] = ()  # what alone was run
    absent: str = ""  # why there is nothing to see
    plain: Outcome = field(default_factory=Outcome)
    served: Outcome = field(default_factory=Outcome)
    again: dict[str, tuple[str, str]] = field(default_factory=dict)  # what differed, run once more: without, with

    def differing(self) -> list[str]:
        names = [*self.plain.tests, *(name for name in self.served.tests if name not in self.plain.tests)]
        return [name for name in names if self.plain.state(name) != self.served.state(name)]

    def lost(self) -> list[str]:
        """What passes without us and does not with us, each time that it was run."""
        worse = [name for name in self.differing() if is_worse(self.plain.state(name), self.served.state(name))]
        return [name for name in worse if name not in self.again or is_worse(*self.again[name])]

    def result(self) -> str:
        if self.absent:
            return "not to be had"
        if not self.served.served:
            return "NOT SERVED"
        if self.plain.state(WHOLE) == self.served.state(WHOLE) == FAILED:
            return "BREAKS OFF IN BOTH"
        if lost := self.lost():
            return f"{len(lost)} LOST"
        return "same" if not self.differing() else "none lost"

    def cells(self) -> list[str]:
        if self.absent:
            return [self.name, self.version, self.result(), *["-"] * (len(HEAD) - 3)]
        turns = (self.plain, self.served)
        counts = [str(turn.count(state)) for state in (PASSED, FAILED, SKIPPED) for turn in turns]
        return [self.name, self.version, self.result(), *counts, *(f"{turn.seconds:.0f}" for turn in turns)]

    def remarks(self) -> list[str]:
        """What the numbers do not say, a line each."""
        if self.absent:
            return [f"{self.name}: not to be had: {self.absent}"]
        lines = []
        for name in self.differing():
            text = f"{self.name}: {name}: {self.plain.state(name)} without, {self.served.state(name)} with"
            if name in self.again:
                text += "; once more: {} without, {} with".format(*self.again[name])
            lines.append(text)
        both = [name for name in self.plain.tests if self.plain.state(name) == self.served.state(name) == FAILED]
        if both:
            lines.append(f"{self.name}: failed in both: {shortened(both)}")
        if self.served.said:
            lines.append(f"{self.name}: the allocator said: {shortened(self.served.said)}")
        if self.parts:
            lines.append(f"{self.name}: these parts alone: {shortened(self.parts)}")
        unserved = shortened(self.served.unserved) or "none"
        lines.append(
            f"{self.name}: programs seen that called our malloc: {self.served.served}; that did not: {unserved}"
        )
        return lines


def is_worse(plain: str, served: str) -> bool:
    return plain == PASSED and served != PASSED


def shortened(names: Sequence[str]) -> str:
    more = f"; and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return "; ".join(names[:SHOWN]) + more


def run_turn(suite: Suite, ready: Ready, library: Path | None, units: Sequence[str], log: Path) -> Outcome:
    began = time.monotonic()
    outcome = Outcome()
    ended = ""
    before = adopt()
    with tempfile.TemporaryDirectory(prefix="hz-suite-", ignore_cleanup_errors=True) as work, log.open("wb") as output:
        turn = Turn(library, Path(work), tuple(units))
        try:
            done = run_watched(suite.command(ready, turn), turn.environment(), cwd=ready.folder, stdout=output,
                               stderr=subprocess.STDOUT, timeout=suite.limit)  # fmt: skip
            ended = "" if done.code == 0 else f"exit code {done.code}"
            mallocs = {program: file == library for program, file in done.watch.served.items()}
            outcome.served = sum(mallocs.values())
            outcome.unserved = tuple(sorted({program for program, ours in mallocs.items() if not ours}
                                            | set(done.watch.unproven)))  # fmt: skip
        except RunError as error:
            ended = str(error)
        end_what_is_left(before)
    text = log.read_text(encoding="utf-8", errors="replace")
    outcome.seconds = time.monotonic() - began
    outcome.tests = judged(suite.read(text), ended)
    outcome.said = tuple(dict.fromkeys(line for line in text.splitlines() if line.startswith("hz: ")))
    return outcome


def judged(tests: Mapping[str, Case], ended: str) -> dict[str, Case]:
    """A suite whose end is bad, of which no failed test tells why, has failed itself; so has one that tells of no
    test."""
    known = dict(tests)
    told = any(test.state == FAILED for test in known.values())
    if ended.startswith("no end") or (ended and not told) or not known:
        known[WHOLE] = Case(FAILED)
        print(f"hz: {WHOLE}: {ended or 'it told of no test'}", file=sys.stderr)
    return known


def adopt() -> set[int]:
    """From here on, what a suite starts and leaves is a child of ours; returns those that we have already."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return set(tree(os.getpid()))


def end_what_is_left(before: set[int]) -> None:
    """Servers that a suite started and did not stop."""
    left = [pid for pid in tree(os.getpid()) if pid not in before]
    signal_all(left, signal.SIGKILL)
    for pid in left:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def run_suite(suite: Suite, parts: Sequence[str], library: Path, cache: Path, logs: Path) -> Row:
    row = Row(suite.name, parts=tuple(parts))
    try:
        print(f"hz: {suite.name}: getting it ready…", file=sys.stderr)
        ready = suite.prepare(cache)
    except AbsentError as error:
        row.absent = str(error)
        return row
    row.version = ready.version

    def turn(served: bool, units: Sequence[str] = (), name: str = "") -> Outcome:
        how = "with us" if served else "without us"
        print(f"hz: {suite.name}, {how}{', once more' if name else ''}…", file=sys.stderr)
        log = logs / f"{suite.name}.{name}{'served' if served else 'plain'}.log"
        return run_turn(suite, ready, library if served else None, units, log)

    row.plain = turn(False, parts)
    row.served = turn(True, parts)
    if differing := row.differing():
        tests = (row.plain.tests | row.served.tests, row.plain.tests, row.served.tests)
        found = {test.unit for name in differing for known in tests if (test := known.get(name))} - {""}
        units = sorted(found) or parts
        plain, served = turn(False, units, "again."), turn(True, units, "again.")
        row.again = {name: (plain.state(name), served.state(name)) for name in differing}
    return row


def plain_text(rows: Sequence[Row]) -> str:
    table = [list(HEAD), *(row.cells() for row in rows)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(cells, widths, strict=True))).rstrip()
        for cells in table
    )  # fmt: skip


def markdown(rows: Sequence[Row], line: str, library: Path) -> str:
    tree_commit, changed = commit()
    about = [
        f"- line {line}: {library.name} sha256 {sha256(library)}",
        f"- commit: {tree_commit}{', with changes' if changed else ''}",
        f"- CPU: {cpu_name()}, {usable_cpus()} usable; kernel {kernel()}; load at the end {load()}",
        "- same: every test ended alike; none lost: some differ, but none that passes without us fails or is missing"
        " with us each time it is run; what differs is run once more, both ways",
    ]
    body = "\n".join(f"| {' | '.join(row.cells())} |" for row in rows)
    remarks = "\n".join(f"- {text.replace('|', '/')}" for row in rows for text in row.remarks())
    return (
        f"<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Other people's tests with and without {line}\n\n"
        f"Made by `hz suites`.\n\n"
        + "\n".join(about)
        + f"\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}\n{body}\n\n"
        f"{remarks}\n"
    )


def prove(library: Path, line: str) -> None:
    """The library is that of the line: its own word for it."""
    done = subprocess.run(["/bin/ls", "/"], env={"LD_PRELOAD": str(library), "HZ_STATS": "1"}, capture_output=True,
                          text=True, check=False)  # fmt: skip
    if f"hz: stats line={line} " not in done.stderr:
        raise LabError(f"{library} is not of line {line}")


def main(line: str, library: Path, builds: Path, file: str, names: Sequence[str]) -> int:
    wanted = {name: [part for part in parts.split(",") if part]
              for name, _, parts in (word.partition(":") for word in names or SUITES)}  # fmt: skip
    library = library.resolve()
    cache, logs = builds / "cache/suites", builds / "suites"
    cache.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background, and suites try it
    try:
        prove(library, line)
        rows = [run_suite(SUITES[name], parts, library, cache, logs) for name, parts in wanted.items()]
    except LabError as error:
        print(f"hz: error: suites: {error}", file=sys.stderr)
        return 1
    print(plain_text(rows))
    print("\n".join(text for row in rows for text in row.remarks()))
    if file:
        Path(file).absolute().parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(markdown(rows, line, library), encoding="utf-8")
    print(f"hz: what the suites wrote is in {logs}", file=sys.stderr)
    return 0 if all(row.result() in ("same", "none lost") for row in rows) else 1
