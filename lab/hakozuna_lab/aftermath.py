# SPDX-License-Identifier: Apache-2.0
"""What comes back when: the resident memory of a server from its load on, as a table of the seconds and as a picture of
that table. `hz bench PROGRAM --settle MS` writes the table into its document, `hz report PAGE.md` draws it, and the
tables of `hz endure --hours` as well (endurance/page.py). Costs nothing beside what they do anyway."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from hakozuna_lab import LabError, pages, plots
from hakozuna_lab.palette import light, styles
from hakozuna_lab.rows import counting_runs
from hakozuna_lab.store import Results
from hakozuna_lab.tables import markdown_table

HEADING = "seconds after the load"
STEP = 0.5
BEFORE = 5.0  # seconds of the load that are shown
MARKED = 2.5  # seconds
MIB = 1024
AT_REST, KEPT, HIGHEST = "minutes, at rest", "minutes, kept", "minutes, highest"
# Kind of picture: the heading of its table, its title.
ENDURANCE = {
    "rest": (AT_REST, "Anonymous memory at rest over time"),
    "kept": (KEPT, "Memory that the heaps keep beside live blocks, at rest"),
    "highest": (HIGHEST, "Resident memory over time, highest of each interval"),
}

Series = dict[str, list[tuple[float, float]]]  # by allocator: seconds, MiB


def at(record: Mapping[str, Any], second: float) -> float | None:
    """The last sample until then, in MiB; None outside of what was watched."""
    end = record["load_ended"] + second
    samples = record["rss_series"]
    if not samples or not samples[0][0] <= end <= samples[-1][0]:
        return None
    return float(max(sample for sample in samples if sample[0] <= end)[1]) / MIB


def rows(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[list[str]]:
    """One for each half second at which all runs of all contenders were watched; medians of the runs."""
    found = []
    last = max(record["rss_series"][-1][0] - record["load_ended"] for runs in records.values() for record in runs)
    for step in range(-round(BEFORE / STEP), int(last / STEP) + 1):
        values = [[at(record, step * STEP) for record in runs] for runs in records.values()]
        known = [[value for value in runs if value is not None] for runs in values]
        if known == values:
            found.append([f"{step * STEP:g}", *(f"{median(runs):.1f}" for runs in known)])
    return found


def markdown(results: Results) -> list[str]:
    """A table for each program that was left alone for a time of the caller's choice."""
    settled = {cell.id for cell in results.header.selection.cells if cell.kind == "program" and cell.settle is not None}
    made = []
    for name, contenders in counting_runs(results).items():
        records = {
            contender: [run.record for run in runs.values() if "load_ended" in run.record]
            for contender, runs in contenders.items()
        }
        there = {contender: runs for contender, runs in records.items() if runs}
        if name in settled and there:
            made += [f"Resident memory in {name}, MiB:", markdown_table([HEADING, *there], rows(there))]
    return made


def read(page: Path, heading: str = HEADING) -> Series:
    """The first such table of a page; empty when there is none. A dash is nothing, and so is an empty cell."""
    table = next((table for table in pages.tables(page) if table[0][0] == heading), [[heading]])
    names = table[0][1:]
    series: Series = {name: [] for name in names}
    for row in table[1:]:
        try:
            at, *values = [None if cell in ("-", "") else float(cell) for cell in row]
        except ValueError as error:
            raise LabError(f"{page}: {row} is no row of numbers") from error
        for name, value in zip(names, values, strict=True):
            if at is not None and value is not None:
                series[name].append((at, value))
    return series


def draw(series: Series) -> Figure:
    """From zero, for memory is compared; the first of the table is ours."""
    ours, *others = series
    lines = {name: [plots.Point(x, y, y, y) for x, y in points] for name, points in series.items()}
    looks = styles([ours], others)
    figure = plots.curves("Resident memory over time", HEADING, "MiB", lines, looks)
    (axes,) = figure.axes
    # Colours come back with another marker: a line has one at every few seconds, so that it is told apart anywhere.
    for name, points in series.items():
        for x, y in points:
            if x % MARKED == 0 and not plots.are_marked(series):
                plots.mark(axes, looks[name], x, y, f"{name}, {HEADING} {x:g}: {y:.4g} MiB")
    highest = max(y for points in series.values() for _, y in points)
    axes.set(yscale="linear", ylim=(0, highest * 1.06))
    axes.axvline(0, color=light("soft"), linewidth=1)
    return figure


def draw_endurance(title: str, series: Series) -> Figure:
    """All are ours: a service each."""
    lines = {name: [plots.Point(x, y, y, y) for x, y in points] for name, points in series.items() if points}
    return plots.curves(title, "minutes", "MiB", lines, styles([], list(series)))
