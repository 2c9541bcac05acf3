# SPDX-License-Identifier: Apache-2.0
"""`hz report PAGE.md`: the pictures of a results page. Where its rows are real programs: the speed and the peak memory
of each allocator beside the C library's, by medians; where it has tables of memory over time: those (aftermath.py).
They are made of the rows that the page links, or of tables that stand in it, so a picture shows what was committed and
nothing else. README shows some; test/lab/overview_test.py holds them to their pages. Takes a second."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from hakozuna_lab import LabError, UsageError, aftermath, pages, plots
from hakozuna_lab.palette import Style, light, styles

ALL = "glibc"  # what all others are compared with
HEADINGS = ("cell", "allocator", "ops/s: median (p25..p75)", "peak MiB")
DATA = ("cell", "allocator", "ops_per_s", "peak_mib")  # of tables.write_data
SCALES = {"k": 1e3, "M": 1e6}
TICKS = (0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3)
WIDTH, ROW = 8.6, 0.3  # inches


@dataclass(frozen=True)
class Measured:
    ops_per_s: float
    peak_mib: float


Programs = dict[str, dict[str, Measured]]  # by program and allocator, in the order of the page


def operations(text: str) -> float:
    """The median of a cell such as "551.75 k (533.39 k..620.04 k)"."""
    found = re.match(r"([\d.]+)(?: ([kM]))?(?: \(|$)", text)
    if not found:
        raise UsageError(f"'{text}' is no number of operations")
    return float(found[1]) * SCALES.get(found[2], 1)


def measured(table: pages.Table) -> Programs:
    """Nothing if it is no table of programs. A run that failed has no speed."""
    head, *rows = table
    programs: Programs = {}
    for headings, reader in ((DATA, float), (HEADINGS, operations)):
        if all(heading in head for heading in headings):
            columns = [head.index(heading) for heading in headings]
            for cell, allocator, speed, peak in ([row[column] for column in columns] for row in rows):
                if speed:
                    one = Measured(reader(speed), float(peak))
                    programs.setdefault(cell, {})[allocator.partition("+")[0]] = one
            return programs
    return programs


def read(page: Path) -> Programs:
    """The first table of programs; nothing when there is none."""
    programs = next(filter(None, map(measured, pages.tables(page))), {})
    for name, found in programs.items():
        if ALL not in found:
            raise LabError(f"{page}: {name} has no row of {ALL}")
    return programs


def panel(
    axes: Axes, title: str, ratios: Mapping[str, Mapping[str, float]], looks: Mapping[str, Style], ours: str
) -> None:
    """A row for each program, a mark for each allocator; `ours` is drawn last and largest."""
    rows = list(ratios)
    values = [value for measured in ratios.values() for value in measured.values()]
    axes.set(title=title, ylim=(len(rows) - 0.5, -0.5), xscale="log")
    axes.set_xlim(min(values) * 0.95, max(values) * 1.05)
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axvline(1, color=light("soft"), linewidth=1)
    axes.tick_params(left=False)
    for place, row in enumerate(rows):
        for name in sorted(ratios[row], key=lambda one: one == ours):
            tip = f"{row}, {name}: {ratios[row][name]:.2f} of {ALL}"
            plots.mark(axes, looks[name], ratios[row][name], place, tip, hollow=name != ours)


def draw(programs: Programs, ours: str) -> Figure:
    names = list(dict.fromkeys(name for measured in programs.values() for name in measured if name != ALL))
    looks = styles([ours], [name for name in names if name != ours])
    figure = Figure(figsize=(WIDTH, 1.25 + ROW * len(programs)), layout="constrained")
    speed, memory = figure.subplots(1, 2, sharey=True)

    def ratios(what: str) -> dict[str, dict[str, float]]:
        return {
            program: {name: getattr(one, what) / getattr(measured[ALL], what) for name, one in measured.items()
                      if name != ALL}
            for program, measured in programs.items()
        }  # fmt: skip

    panel(speed, f"Speed, {ALL} = 1: further right is faster", ratios("ops_per_s"), looks, ours)
    panel(memory, f"Peak memory, {ALL} = 1: further left is less", ratios("peak_mib"), looks, ours)
    speed.set_yticks(range(len(programs)), list(programs))
    legend(figure, [ours, *(name for name in names if name != ours)], looks)
    return figure


def legend(figure: Figure, names: Sequence[str], looks: Mapping[str, Style]) -> None:
    handles = []
    for name in names:
        style = looks[name]
        face = style.color if style.ours else light("page")
        size = 8 if style.ours else 6
        handles.append(
            Line2D([], [], color=style.color, marker=style.marker, linewidth=0, markersize=size, markerfacecolor=face)
        )
    made = figure.legend(handles, names, loc="outside lower center", ncols=(len(names) + 1) // 2, handletextpad=0.2)
    made.get_texts()[0].set_fontweight("bold")


def make(page: Path, folder: Path) -> list[Path]:
    """Writes what pictures the page has tables for, beside it or where told, and returns the SVGs."""
    figures: dict[str, tuple[Figure, str]] = {}
    if programs := read(page):
        ours = next(iter(next(iter(programs.values()))))  # the page's first row is the line that is judged
        description = f"Speed and peak memory of {len(programs)} real programs under {ours} and its peers, {ALL} = 1"
        figures["overview"] = draw(programs, ours), description
    if series := aftermath.read(page):
        figures["memory"] = aftermath.draw(series), f"Resident memory over time under {', '.join(series)}"
    for kind, (heading, title) in aftermath.ENDURANCE.items():
        if series := aftermath.read(page, heading):
            figures[kind] = aftermath.draw_endurance(title, series), f"{title}: {', '.join(series)}"
    if not figures:
        raise LabError(
            f"{page}: there is no table with the columns {', '.join(HEADINGS)}, and none of memory over time"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for kind, (figure, description) in figures.items():
        plots.save(figure, folder, f"{page.stem}-{kind}", description)
        (folder / f"{page.stem}-{kind}.png").unlink()  # a page shows the other, which follows its scheme
    return [folder / f"{page.stem}-{kind}.svg" for kind in figures]
