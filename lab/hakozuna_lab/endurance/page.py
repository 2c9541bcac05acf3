# SPDX-License-Identifier: Apache-2.0
"""The page of `hz endure --hours`: what drifts and what does not, memory over time as tables and as pictures of these,
and the conditions. The pictures are made as those of every results page (overview.py), so that a page that is kept can
have its own again: `hz report PAGE.md`. Costs a second."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from hakozuna_lab import aftermath, machine, overview
from hakozuna_lab.contender import Contender
from hakozuna_lab.endurance import drift, trouble
from hakozuna_lab.inventory import sha256
from hakozuna_lab.tables import markdown_table

if TYPE_CHECKING:
    from hakozuna_lab.endurance.run import Look, Story

ROWS = 40  # of a table over time
Points = Sequence[tuple[float, float]]  # hours, MiB


@dataclass(frozen=True)
class Conditions:
    contender: Contender
    hours: float
    command: Sequence[str]
    absent: Mapping[str, str]
    commit: str
    checksum: str  # of the library
    load: str
    times: machine.CpuTimes

    @classmethod
    def begin(
        cls, contender: Contender, hours: float, command: Sequence[str], absent: Mapping[str, str]
    ) -> "Conditions":
        """What it is now: by the end the tree, the library and the machine may be others."""
        assert contender.library
        commit, changed = machine.commit()
        commit += ", with changes" * changed
        checksum = sha256(contender.library)
        return cls(contender, hours, command, absent, commit, checksum, machine.load(), machine.cpu_times())

    def told(self, stories: Sequence["Story"]) -> list[str]:
        assert self.contender.library
        others = machine.others_share(self.times, machine.cpu_times())
        return [
            f"command: `{shlex.join(self.command)}`, ended {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            f"commit: {self.commit}",
            f"{self.contender.library.resolve().name} sha256 {self.checksum}",
            f"CPU: {machine.cpu_name()}, {machine.usable_cpus()} usable; kernel {machine.kernel()}",
            f"transparent huge pages: {machine.thp()}",
            f"load: {self.load} before, {machine.load()} after; others used {others:.0%} of the machine",
            *(f"{story.service.name}: version {story.version}, {settings(story)}" for story in stories),
            *(f"{name}: absent, {reason}" for name, reason in self.absent.items()),
        ]


def settings(story: "Story") -> str:
    return " ".join(f"{key}={value}" for key, value in story.service.env.items()) or "no variable of ours"


def middle(looks: Sequence["Look"], of: Callable[["Look"], float]) -> str:
    """Of the part that counts for the drift."""
    after = looks[-1].hours - drift.SETTLED * (looks[-1].hours - looks[0].hours)
    return f"{median(of(look) for look in looks if look.hours >= after):.1f}"


def row(story: "Story") -> list[str]:
    if not story.rest or not story.full:
        figures = ["-"] * 8
    else:
        rest: list[Callable[[Look], float]] = [
            lambda look: look.pss, lambda look: look.anon, lambda look: look.live, lambda look: look.cached,
            lambda look: look.held_open, lambda look: look.dirty, lambda look: look.metadata,
        ]  # fmt: skip
        figures = [middle(story.full, lambda look: look.pss), *(middle(story.rest, of) for of in rest)]
    return [story.service.name, str(len(story.rest)), *figures, str(story.drift), story.verdict]


HEADINGS = (
    "service", "rounds", "full", "at rest", "anonymous", "live", "cached", "held open", "dirty", "metadata",
    "drift of the anonymous [95 %]", "verdict",
)  # fmt: skip


def table(stories: Sequence["Story"]) -> str:
    return markdown_table(HEADINGS, [row(story) for story in stories])


def over_time(heading: str, hours: float, series: Mapping[str, Points], of: Callable[[Sequence[float]], float]) -> str:
    """One row for each part of the time, of what a service had in it; a dash where that is nothing."""
    last = max([hours, *(points[-1][0] for points in series.values() if points)])
    width = last / ROWS
    rows = []
    for number in range(ROWS):
        cells = []
        for points in series.values():
            there = [mib for at, mib in points if number == min(int(at / width), ROWS - 1)]
            cells.append(f"{of(there):.2f}" if there else "-")
        if set(cells) != {"-"}:
            rows.append([f"{60 * width * (number + 1):.2f}".rstrip("0").rstrip("."), *cells])
    return markdown_table([heading, *series], rows)


def verdicts(stories: Sequence["Story"]) -> str:
    found = [
        f"{sum(story.verdict == what for story in stories)} {what}" for what in ("level", "drift", "unclear", "failed")
    ]
    return ", ".join(one for one in found if not one.startswith("0 "))


def write(stories: Sequence["Story"], conditions: Conditions, path: Path) -> Path:
    rest = {story.service.name: [(look.hours, look.anon) for look in story.rest] for story in stories}
    kept = {story.service.name: [(look.hours, look.kept) for look in story.rest] for story in stories}
    resident = {story.service.name: story.resident for story in stories}
    hours = conditions.hours
    tables = {
        "rest": over_time(aftermath.AT_REST, hours, rest, median),
        "kept": over_time(aftermath.KEPT, hours, kept, median),
        "highest": over_time(aftermath.HIGHEST, hours, resident, max),
    }
    text = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"# Endurance, {hours:g} hours, {datetime.now(UTC):%Y-%m-%d}",
        f"**In short.** {len(stories)} services under {conditions.contender.name} for {hours:g} hours, none of them"
        f" started anew: {verdicts(stories)}.",
        "MiB, medians of the second half. *Full* is a service's memory (PSS) with its load, *at rest* when that was"
        " taken away,\n*anonymous* what of that is no file's and no shared mapping's; the rest is what our heaps say of"
        " themselves (`hz stat`),\nwhere each process counts what it has in common with the one that forked it.",
        table(stories),
        *(f"{story.service.name} failed: {story.failed}" for story in stories if story.failed),
        "Trouble that was thrown, and how often:",
        "\n".join(f"- {story.service.name}: {trouble.told(story.thrown)}" for story in stories),
    ]
    drawn = [kind for kind, rows in tables.items() if rows.count("\n") > 1]
    text += [f"![{aftermath.ENDURANCE[kind][1]}]({path.stem}-{kind}.svg)" for kind in drawn]
    text += ["## Conditions", "\n".join(f"- {line}" for line in conditions.told(stories)), "## All rows"]
    text += [one for kind in drawn for one in (f"{aftermath.ENDURANCE[kind][1]}, MiB.", tables[kind])]
    path.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    if drawn:
        overview.make(path, path.parent)
    return path
