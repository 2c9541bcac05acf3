# SPDX-License-Identifier: Apache-2.0
"""From runs to rows: what one contender did in one cell, and how the first contender compares with it. Tables and the
report are made of rows."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hakozuna_lab.stats import FEWEST, Estimate, Quartiles, Verdict, median_interval, quartiles, verdict
from hakozuna_lab.store import Results, Run

LATENCIES = ("p50", "p99", "p99.9", "p99.99", "longest")

Rounds = dict[int, Run]  # of one contender in one cell: the run that counts in each round


@dataclass(frozen=True)
class Row:
    """Numbers are None where nothing counts: every run was dirty, one failed, or the notion does not exist."""

    cell: str
    contender: str
    runs: int
    dirty: int = 0
    disturbed: int = 0  # among those that count
    failed: str = ""
    speed: Quartiles | None = None  # operations per second
    ratio: Estimate | None = None  # throughput of the first contender over this one's, pair by pair
    ratio_quartiles: Quartiles | None = None
    verdict: Verdict | None = None  # of the first contender against this one; None for itself
    peak_kib: float | None = None  # peak and idle without the harness's own memory
    idle_kib: float | None = None
    rested_kib: float | None = None  # idle for longer; of cells that have a rest
    after_kib: float | None = None
    latency_ns: Mapping[str, tuple[float, ...]] | None = None  # by call, in the order of LATENCIES: medians of the runs

    @property
    def base(self) -> str:
        return self.contender.partition("+")[0]


def counting_runs(results: Results) -> dict[str, dict[str, Rounds]]:
    """{cell: {contender: {round: run}}} in the order of the header; of a round's attempts the last one counts."""
    names = [contender.name for contender in results.header.contenders]
    table: dict[str, dict[str, Rounds]] = {
        cell.id: {name: {} for name in names} for cell in results.header.selection.cells
    }
    for run in results.runs:
        table[run.cell][run.contender][run.round] = run
    return table


def is_clean(run: Run) -> bool:
    return not run.record.get("dirty") and "failed" not in run.record


def speed(run: Run) -> float:
    return float(run.record["ops_per_s"])


def memory_kib(run: Run, moment: str) -> float | None:
    """`moment`: peak, idle, rested or after. The harness's memory is gone when `after` is read."""
    kib = run.record.get(f"rss_{moment}_kib")
    if kib is None:
        return None
    return float(kib) - (0 if moment == "after" else float(run.record.get("harness_kib", 0)))


def pairs(first: Rounds, other: Rounds) -> list[tuple[Run, Run]]:
    """The rounds in which both ran and neither run was dirty."""
    rounds = sorted(first.keys() & other.keys())
    return [(first[n], other[n]) for n in rounds if is_clean(first[n]) and is_clean(other[n])]


def speed_ratios(first: Rounds, other: Rounds) -> list[float]:
    return [speed(a) / speed(b) for a, b in pairs(first, other)]


def median_memory(runs: Iterable[Run], moment: str) -> float | None:
    values = [kib for run in runs if (kib := memory_kib(run, moment)) is not None]
    return statistics.median(values) if values else None


def median_latency(runs: Sequence[Run]) -> dict[str, tuple[float, ...]] | None:
    """Of lanes that time every call."""
    timed = [run.record["latency_ns"] for run in runs if "latency_ns" in run.record]
    if not timed:
        return None
    calls = ("malloc", "free")
    return {call: tuple(statistics.median(one[call][name] for one in timed) for name in LATENCIES) for call in calls}


def row(cell: str, name: str, rounds: Rounds, first: Rounds) -> Row:
    runs = list(rounds.values())
    clean = [run for run in runs if is_clean(run)]
    failed = next((str(run.record["failed"]) for run in runs if "failed" in run.record), "")
    result = Row(
        cell=cell,
        contender=name,
        runs=len(runs),
        dirty=sum(bool(run.record.get("dirty")) for run in runs),
        disturbed=sum(run.disturbed for run in clean),
        failed=failed,
        verdict=None if rounds is first else "refused",
    )
    if failed or not clean:
        return result
    result = replace(
        result,
        speed=quartiles([speed(run) for run in clean]),
        peak_kib=median_memory(clean, "peak"),
        idle_kib=median_memory(clean, "idle"),
        rested_kib=median_memory(clean, "rested"),
        after_kib=median_memory(clean, "after"),
        latency_ns=median_latency(clean),
    )
    ratios = [] if rounds is first else speed_ratios(first, rounds)
    if not ratios:
        return result
    estimate = median_interval(ratios)
    judged = verdict(estimate) if len(ratios) >= FEWEST else "refused"
    return replace(result, ratio=estimate, ratio_quartiles=quartiles(ratios), verdict=judged)


def make_rows(results: Results, first: str = "") -> list[Row]:
    """All rows, every setting of every contender; `first` is the contender that is judged, if not the header's."""
    judged = first or results.header.selection.first
    rows = []
    for cell, contenders in counting_runs(results).items():
        if any(contenders.values()):
            rows += [row(cell, name, rounds, contenders[judged]) for name, rounds in contenders.items() if rounds]
    return rows


def better_settings(rows: Sequence[Row]) -> list[Row]:
    """Of an allocator that ran in several settings, in each cell the one with the highest throughput."""
    best: dict[tuple[str, str], Row] = {}
    for candidate in rows:
        key = candidate.cell, candidate.base
        if key not in best or score(candidate) > score(best[key]):
            best[key] = candidate
    return list(best.values())


def score(candidate: Row) -> float:
    return candidate.speed.median if candidate.speed else -1.0
