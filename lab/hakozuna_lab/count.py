# SPDX-License-Identifier: Apache-2.0
"""`hz bench --count`: counts the instructions of whole programs with each allocator, by callgrind, and reads their peak
without it. A second count differs by some thousandths, where times on a shared machine differ by more than allocators
do. Neither cycles nor the kernel's work are counted, so an allocator that maps memory more often looks better than it
is; the peak stands beside it for that. Called by the command line; runs each program eight times per allocator."""

import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hakozuna_lab import LabError, RunError, UsageError, machine, tables
from hakozuna_lab.bench import Request, find_contenders
from hakozuna_lab.contender import Contender
from hakozuna_lab.counted import COUNTED, Counted, write_inputs
from hakozuna_lab.paths import RESULTS
from hakozuna_lab.programs.program import Job, served_env

TIMEOUT = 600.0  # seconds of one program under callgrind; the longest takes one minute
PEAK_RUNS = 7


@dataclass(frozen=True)
class Cost:
    instructions: int  # of all processes of the program together
    peak_kib: int


def measure(counted: Counted, contenders: Sequence[Contender]) -> dict[str, Cost | str]:
    """Returns each contender's cost, or why it failed. The runs for the peak are interleaved; the peak is their median.
    Errors: LabError if another malloc served the program than the contender's."""
    peaks: dict[str, list[int]] = {contender.name: [] for contender in contenders}
    failures: dict[str, str] = {}
    for number in range(PEAK_RUNS):
        for contender in (*contenders[number % len(contenders) :], *contenders[: number % len(contenders)]):
            if contender.name not in failures:
                try:
                    peaks[contender.name].append(peak_kib(counted, contender))
                except RunError as error:
                    failures[contender.name] = f"failed: {error}"
    costs: dict[str, Cost | str] = {}
    for contender in contenders:
        try:
            costs[contender.name] = failures.get(contender.name) or Cost(
                count(counted, contender), round(statistics.median(peaks[contender.name]))
            )
        except RunError as error:
            costs[contender.name] = f"failed: {error}"
    return costs


def peak_kib(counted: Counted, contender: Contender) -> int:
    with tempfile.TemporaryDirectory(prefix="hz-count-") as name:
        return int(counted.program.run(contender, f"{counted.name}/once", Path(name))["rss_peak_kib"])


def count(counted: Counted, contender: Contender) -> int:
    """Returns the instructions of all processes of one run. Errors: RunError if the program fails."""
    with tempfile.TemporaryDirectory(prefix="hz-count-") as name:
        return count_in(Path(name), counted, contender)


def count_in(folder: Path, counted: Counted, contender: Contender) -> int:
    write_inputs(folder)
    files, log = folder / "callgrind", folder / "output"
    files.mkdir()
    command = counted.command()
    env = {**served_env(Job(contender, "once", folder)), **command.env}
    tool = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={files}/%p"]
    with Path(command.stdin).open("rb") as stdin, log.open("wb") as output:
        try:
            done = subprocess.run(
                [*tool, *command.words], env=env, cwd=folder, stdin=stdin, stdout=output, stderr=output,
                timeout=TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise RunError(f"no end after {TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        raise RunError(f"ended with {done.returncode}: {log.read_text(encoding='utf-8', errors='replace')[-500:]}")
    return sum(totals(path.read_text(encoding="utf-8", errors="replace")) for path in files.iterdir())


def totals(text: str) -> int:
    """Returns the instructions of one process, from callgrind's file of it."""
    found = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
    if found is None:
        raise LabError("callgrind told no total")
    return int(found[1])


def choose(words: Sequence[str]) -> list[Counted]:
    """Returns the named programs, which must be installed; for `programs`, or without names, all that are installed."""
    for word in words:
        if word != "programs" and word not in COUNTED:
            raise UsageError(f"there is no program '{word}' to count; there are: {' '.join(COUNTED)}")
    named = [COUNTED[word] for word in dict.fromkeys(words) if word != "programs"]
    for one in named:
        if reason := one.program.available():
            raise LabError(f"{one.name}: {reason}")
    if named and "programs" not in words:
        return named
    chosen = []
    for one in COUNTED.values():
        if reason := one.program.available():
            print(f"hz: without {one.name}: {reason}", file=sys.stderr)
        else:
            chosen.append(one)
    return chosen


Costs = Mapping[str, Mapping[str, Cost | str]]  # by program and contender; a text says why a cost is missing


def main(request: Request, words: Sequence[str], arguments: Sequence[str]) -> None:
    if shutil.which("valgrind") is None:
        raise LabError("valgrind is missing (Debian's package valgrind)")
    chosen = choose(words)
    contenders = find_contenders(replace(request, peers=request.peers or ["newest"]))
    measure_all(chosen, contenders, request.out, shlex.join(["hz", "bench", *arguments]))


def measure_all(chosen: Sequence[Counted], contenders: Sequence[Contender], out: Path | None, command: str) -> None:
    path = out or RESULTS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-count.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    costs: dict[str, dict[str, Cost | str]] = {}
    for one in chosen:
        print(f"hz: counting {one.name}…", file=sys.stderr, flush=True)
        costs[one.name] = measure(one, contenders)
        # After each program, so that an error in the next one does not lose the earlier rows.
        path.write_text(document(costs, chosen, contenders, command), encoding="utf-8")
    show(costs, contenders)
    print(f"hz: {path}", file=sys.stderr)


def ratios(costs: Costs, first: str, other: str) -> list[float]:
    """Returns, for each program that both ran, the other's instructions divided by the first one's."""
    both = [(row[first], row[other]) for row in costs.values()]
    return [b.instructions / a.instructions for a, b in both if isinstance(a, Cost) and isinstance(b, Cost)]


def best_of_others(row: Mapping[str, Cost | str], first: str) -> float | None:
    own = row[first]
    others = [cost.instructions for name, cost in row.items() if name != first and isinstance(cost, Cost)]
    return min(others) / own.instructions if others and isinstance(own, Cost) else None


def headings(contenders: Sequence[Contender]) -> list[str]:
    first = contenders[0].name
    return ["program", f"{first}: M instructions, peak MiB", *(f"{one.name} / {first}" for one in contenders[1:]),
            *(["best other"] if len(contenders) > 1 else [])]  # fmt: skip


def fields(name: str, row: Mapping[str, Cost | str], first: str) -> list[str]:
    own = row[first]
    absolute = own if isinstance(own, str) else f"{own.instructions / 1e6:.1f}, {own.peak_kib / 1024:.1f}"
    cells = [name, absolute]
    for other, cost in row.items():
        if other == first:
            continue
        if isinstance(cost, str) or isinstance(own, str):
            cells.append(cost if isinstance(cost, str) else "-")
        else:
            cells.append(f"{cost.instructions / own.instructions:.3f} ({cost.peak_kib / own.peak_kib:.2f})")
    if len(row) > 1:
        cells.append(tables.number(best_of_others(row, first), digits=3))
    return cells


def summary(costs: Costs, contenders: Sequence[Contender]) -> list[list[str]]:
    """Returns two rows: the geometric mean of each column, and its lowest ratio, which is the worst for the first."""
    first, *others = (one.name for one in contenders)
    columns = [ratios(costs, first, other) for other in others]
    columns.append([best for row in costs.values() if (best := best_of_others(row, first)) is not None])
    if not others:
        return []
    means = [f"{statistics.geometric_mean(column):.3f}" if column else "-" for column in columns]
    worst = [f"{min(column):.3f}" if column else "-" for column in columns]
    return [["mean", "", *means], ["least", "", *worst]]


def rows(costs: Costs, contenders: Sequence[Contender]) -> list[list[str]]:
    first = contenders[0].name
    return [*(fields(name, row, first) for name, row in costs.items()), *summary(costs, contenders)]


def document(costs: Costs, chosen: Sequence[Counted], contenders: Sequence[Contender], command: str) -> str:
    commit, changed = machine.commit()
    first = contenders[0].name
    allocators = [f"{one.name} {one.version}".strip() for one in contenders]
    conditions = (
        f"command: `{command}`\n\ncommit: {commit}{' with local changes' if changed else ''}; allocators: "
        f"{', '.join(allocators)}; programs: {', '.join(f'{one.name} {one.program.version()}' for one in chosen)}\n\n"
        f"Instructions of one run under callgrind; peaks are medians of {PEAK_RUNS} interleaved runs without it. Other "
        f"columns: instructions divided by those of {first} (above 1, {first} needs fewer), and in brackets the peaks, "
        "divided likewise. Cycles and the kernel's work are not counted."
    )
    return f"{conditions}\n\n{tables.markdown_table(headings(contenders), rows(costs, contenders))}\n"


def show(costs: Costs, contenders: Sequence[Contender]) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings(contenders)):
        table.add_column(heading, justify="left" if number == 0 else "right")
    for line in rows(costs, contenders):
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else tables.WIDE_COLUMNS).print(table)
