# SPDX-License-Identifier: Apache-2.0
"""The record that `hz ab` ends with, in the form of the pages in doc/decisions: GO or NO-GO by a plain rule, and what
was won beside what was lost."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hakozuna_lab.comparison import CONFIDENCE, LOOKS, Comparison, Memory
from hakozuna_lab.store import Results
from hakozuna_lab.tables import conditions, interval, markdown_table, number, spread

PERCENT = f"{CONFIDENCE * 100:g} %"
HEADINGS = (
    "cell",
    "guard",
    "A ops/s: median (p25..p75)",
    "B ops/s: median (p25..p75)",
    f"B / A [{PERCENT}]",
    "B is",
    "peak MiB, A and B",
    "idle MiB, A and B",
    "after MiB, A and B",
    "pairs",
    "dirty",
    "disturbed",
)


@dataclass(frozen=True)
class Decision:
    go: bool
    won: list[str]
    lost: list[str]
    unclear: list[str]


def decide(comparisons: Sequence[Comparison]) -> Decision:
    """GO: something won, nothing lost. Memory at peak and while idle counts as speed does."""
    won: list[str] = []
    lost: list[str] = []
    unclear = [one.cell for one in comparisons if one.word == "unclear"]
    for one in comparisons:
        if one.word in ("ahead", "behind") and one.ratio:
            (won if one.word == "ahead" else lost).append(f"{one.cell} speed {one.ratio.median - 1:+.1%}")
        if one.word == "refused":
            lost.append(f"{one.cell} refused ({one.failed or 'dirty runs'})")
        for moment, memory in (("peak", one.peak), ("idle", one.idle)):
            if memory.word in ("less", "more") and memory.a_kib and memory.b_kib is not None:
                text = f"{one.cell} {moment} memory {memory.b_kib / memory.a_kib - 1:+.0%}"
                (won if memory.word == "less" else lost).append(text)
            if memory.word == "unclear":
                unclear.append(f"{one.cell} {moment} memory")
    return Decision(bool(won) and not lost, won, lost, unclear)


def both(memory: Memory) -> str:
    mark = f" ({memory.word})" if memory.word in ("less", "more", "unclear") else ""
    return f"{number(memory.a_kib, 1024, 1)}, {number(memory.b_kib, 1024, 1)}{mark}"


def fields(one: Comparison, guards: Collection[str]) -> list[str]:
    return [
        one.cell,
        "guard" if one.cell.partition("/")[0] in guards else "",
        spread(one.a),
        spread(one.b),
        interval(one.ratio),
        one.word,
        both(one.peak),
        both(one.idle),
        both(one.after),
        str(one.pairs),
        str(one.dirty),
        str(one.disturbed),
    ]


def listed(texts: Sequence[str]) -> str:
    return "; ".join(texts) or "nothing"


def record(results: Results, comparisons: Sequence[Comparison], guards: Collection[str]) -> str:
    a, b = (contender.name for contender in results.header.contenders)
    decision = decide(comparisons)
    table = markdown_table(HEADINGS, [fields(one, guards) for one in comparisons])
    return f"""<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- doc/decisions/{datetime.now(UTC):%Y-%m-%d}-WHAT.md: write the two paragraphs in capitals, then commit it. -->
# {b} against {a}: {"GO" if decision.go else "NO-GO"}

**Question.** WHAT B CHANGES, AND WHY IT MIGHT HELP.

**Numbers.** A is {a}, B is {b}. Pairs until the {PERCENT} interval of the median ratio excludes 1 or lies within
1 % of it; looked at after {", ".join(map(str, LOOKS))} pairs. GO means: something won, nothing lost.

{table}

- won: {listed(decision.won)}
- lost: {listed(decision.lost)}
- unclear: {listed(decision.unclear)}

{conditions(results)}

**What would change it.** WHAT WOULD CHANGE THE ANSWER.
"""
