# SPDX-License-Identifier: Apache-2.0
"""Two contenders in one cell: B's throughput and memory over A's, pair by pair, and when enough pairs were made."""

from dataclasses import dataclass
from typing import Literal

from hakozuna_lab.rows import Rounds, is_clean, median_memory, memory_kib, pairs, speed, speed_ratios
from hakozuna_lab.stats import Estimate, Quartiles, Verdict, median_interval, quartiles, verdict
from hakozuna_lab.store import Run

# The numbers of pairs after which one looks. Each look is a chance to be wrong: an interval of 95 % after every pair
# finds a difference between a library and itself in three of ten comparisons, these five looks at 99 % in one of 20.
LOOKS = (8, 12, 16, 24, 40)
CONFIDENCE = 0.99

# Memory differs when it does so in every likely case by a twentieth, and by a mebibyte; it is level when in no likely
# case it differs by a twentieth, or the medians by less than a mebibyte.
MEMORY_SHARE = 0.05
MEMORY_KIB = 1024

MemoryWord = Literal["less", "level", "more", "unclear", "-"]


@dataclass(frozen=True)
class Memory:
    a_kib: float | None
    b_kib: float | None
    word: MemoryWord = "-"


@dataclass(frozen=True)
class Comparison:
    """All of B against A. `pairs` counts those in which both runs were clean."""

    cell: str
    pairs: int
    word: Verdict
    peak: Memory
    idle: Memory
    after: Memory
    a: Quartiles | None = None
    b: Quartiles | None = None
    ratio: Estimate | None = None
    dirty: int = 0
    disturbed: int = 0
    failed: str = ""


def compare(cell: str, a: Rounds, b: Rounds) -> Comparison:
    clean = pairs(a, b)
    runs = [*a.values(), *b.values()]
    failed = next((str(run.record["failed"]) for run in runs if "failed" in run.record), "")
    refused = bool(failed) or not clean
    ratio = None if refused else median_interval(speed_ratios(b, a), CONFIDENCE)
    return Comparison(
        cell=cell,
        pairs=len(clean),
        word=verdict(ratio) if ratio else "refused",
        peak=memory(clean, "peak"),
        idle=memory(clean, "idle"),
        after=memory(clean, "after"),
        a=None if refused else quartiles([speed(run) for run, _ in clean]),
        b=None if refused else quartiles([speed(run) for _, run in clean]),
        ratio=ratio,
        dirty=sum(bool(run.record.get("dirty")) for run in runs),
        disturbed=sum(run.disturbed for run in runs if is_clean(run)),
        failed=failed,
    )


def is_clear(comparison: Comparison) -> bool:
    """More pairs would not change the answer. A row that is refused for dirty runs may yet become clean."""
    return comparison.word in ("ahead", "level", "behind") or bool(comparison.failed)


def memory(clean: list[tuple[Run, Run]], moment: str) -> Memory:
    a, b = (median_memory((pair[which] for pair in clean), moment) for which in (0, 1))
    ratios = [
        b_kib / a_kib
        for run_a, run_b in clean
        if (a_kib := memory_kib(run_a, moment)) and (b_kib := memory_kib(run_b, moment))
    ]
    if a is None or b is None or not ratios:
        return Memory(a, b)
    interval = median_interval(ratios, CONFIDENCE)
    if abs(b - a) <= MEMORY_KIB or (interval.low >= 1 - MEMORY_SHARE and interval.high <= 1 + MEMORY_SHARE):
        return Memory(a, b, "level")
    if interval.low > 1 + MEMORY_SHARE:
        return Memory(a, b, "more")
    return Memory(a, b, "less" if interval.high < 1 - MEMORY_SHARE else "unclear")
