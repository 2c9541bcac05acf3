# SPDX-License-Identifier: Apache-2.0
"""The pictures of the report: throughput against memory, curves, heat table. They get numbers that are ready to be
drawn (report.py makes them) and are saved as PNG and as SVG. The SVG also stands in the page, where it follows the
reader's colour scheme and can be searched. A picture costs about a fifth of a second."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from hakozuna_lab.palette import Style, light, style_sheet, themed
from hakozuna_lab.tables import operations

WIDTH, HEIGHT = 5.6, 3.0  # inches
# A scale is logarithmic when its values differ by more than this.
WIDE_RANGE = 8
MOST_MARKED = 20  # points of a line
HEAT_STEPS = (1.1, 1.5, 2.0)
SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": light("soft"),
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": light("rule"),
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    **{key: light("ink") for key in ("text.color", "axes.titlecolor", "legend.labelcolor")},
    **{key: light("soft") for key in ("axes.labelcolor", "xtick.color", "ytick.color")},
}


mpl.rcParams.update(SETTINGS)


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Memory:
    """One allocator in the picture of throughput against memory, in MiB."""

    ops_per_s: float
    idle: float
    peak: float


@dataclass(frozen=True)
class Heat:
    ratio: float
    verdict: str  # of stats.py
    tip: str


def plain(value: float, _: object = None) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def start(title: str, x_label: str, y_label: str, entries: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, max(HEIGHT, 0.6 + 0.17 * entries)), layout="constrained")
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    return figure, axes


def scale(axis: str, axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic where the values need it, else from zero."""
    positive = [value for value in values if value > 0]
    if positive and len(positive) == len(values) and max(positive) > WIDE_RANGE * min(positive):
        axes.set(**{f"{axis}scale": "log"})
        which = getattr(axes, f"{axis}axis")
        which.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        which.set_minor_locator(NullLocator())
    else:
        axes.set(**{f"{axis}lim": (0, max(positive, default=1) * 1.06)})
    getattr(axes, f"{axis}axis").set_major_formatter(FuncFormatter(plain))


def mark(axes: Axes, style: Style, x: float, y: float, tip: str, hollow: bool = False) -> None:
    axes.plot(
        [x],
        [y],
        color=style.color,
        linestyle="none",
        marker=style.marker,
        markersize=8 if style.ours else 6,
        markerfacecolor=light("page") if hollow else style.color,
        markeredgecolor=style.color,
        markeredgewidth=1.1 if hollow else 0.5,
        gid=f"tip:{tip}",
        zorder=4 if style.ours else 3,
        clip_on=False,  # a mark on the edge is whole, and takes fewer bytes
    )


def legend(axes: Axes, names: Sequence[str], styles: Mapping[str, Style], lines: bool) -> None:
    """To the right, in the order given, so that it reads like the ranking."""
    handles = []
    for name in names:
        style = styles[name]
        handles.append(
            Line2D([], [], color=style.color, marker=style.marker, linewidth=1.2 if lines else 0, markersize=6)
        )
    made = axes.legend(handles, names, loc="upper left", bbox_to_anchor=(1.01, 1.03), handlelength=1.6 if lines else 1)
    for text in made.get_texts():
        text.set_fontweight("bold" if styles[text.get_text()].ours else "normal")


def scatter(title: str, points: Mapping[str, Memory], styles: Mapping[str, Style]) -> Figure:
    figure, axes = start(title, "RSS, MiB: hollow idle, filled peak", "ops/s", len(points))
    for name, point in points.items():
        style, speed = styles[name], point.ops_per_s
        axes.plot([point.idle, point.peak], [speed, speed], color=style.color, linewidth=1.4 if style.ours else 0.9)
        tip = f"{name}: {operations(speed)} ops/s, idle {point.idle:.1f} MiB, peak {point.peak:.1f} MiB"
        mark(axes, style, point.idle, speed, tip, hollow=True)
        mark(axes, style, point.peak, speed, tip)
    scale("x", axes, [value for point in points.values() for value in (point.idle, point.peak)])
    scale("y", axes, [point.ops_per_s for point in points.values()])
    legend(axes, sorted(points, key=lambda name: -points[name].ops_per_s), styles, lines=False)
    return figure


def are_marked(series: Mapping[str, Sequence[object]]) -> bool:
    """Every point of a sweep is marked; a series in time has too many of them."""
    return max(map(len, series.values())) <= MOST_MARKED


def curves(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Sequence[Point]],
    styles: Mapping[str, Style],
    ticks: Mapping[float, str] | None = None,
    log_x: bool = False,
) -> Figure:
    """Lines with a band from low to high. `ticks` gives the places and names on the x axis."""
    figure, axes = start(title, x_label, y_label, len(series))
    marked = are_marked(series)
    for name, points in series.items():
        style = styles[name]
        x = [point.x for point in points]
        axes.plot(x, [point.y for point in points], color=style.color, linewidth=2.2 if style.ours else 1.1,
                  gid=f"tip:{name}", zorder=4 if style.ours else 3)  # fmt: skip
        if any(point.low != point.high for point in points):
            low, high = [point.low for point in points], [point.high for point in points]
            axes.fill_between(x, low, high, color=style.color, alpha=0.13, linewidth=0)
        for point in points if marked else points[-1:]:
            mark(axes, style, point.x, point.y, f"{name}, {x_label} {point.x:g}: {point.y:.4g} {y_label}")
    if log_x:
        axes.set_xscale("log", base=2)
    if ticks:
        turned = 35 if sum(map(len, ticks.values())) > 40 else 0
        axes.set_xticks(list(ticks), list(ticks.values()), rotation=turned, ha="right" if turned else "center")
        axes.xaxis.set_minor_locator(NullLocator())
    scale("y", axes, [value for points in series.values() for point in points for value in (point.low, point.high)])
    legend(axes, sorted(series, key=lambda name: -series[name][-1].y), styles, lines=True)
    return figure


def heat_color(cell: Heat) -> str:
    """What is unclear has no colour: only what was measured to be level looks level."""
    if cell.verdict not in ("ahead", "behind"):
        return light("level" if cell.verdict == "level" else "page")
    size = max(cell.ratio, 1 / cell.ratio)
    return light(f"{cell.verdict}{1 + sum(size > step for step in HEAT_STEPS)}")


def heat(title: str, rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], Heat]) -> Figure:
    """A table of ratios; a pair without a ratio is marked with a dash."""
    left = max(2.0, 0.15 + 0.075 * max(map(len, rows), default=0))  # inches, and of one letter
    top, wide, high = 1.05, 0.62, 0.21
    width, height = left + wide * len(columns) + 0.3, top + high * len(rows) + 0.05
    figure = Figure(figsize=(max(width, WIDTH), height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, max(width, WIDTH)), ylim=(height, 0))
    axes.axis("off")
    axes.text(0.05, 0.14, title, weight="bold", size=9, va="center")
    for number, column in enumerate(columns):
        x = left + wide * (number + 0.35)
        axes.text(x, top - 0.06, column, rotation=35, ha="left", va="bottom", rotation_mode="anchor")
    for row_number, row in enumerate(rows):
        y = top + high * row_number
        axes.text(left - 0.08, y + high / 2, row, ha="right", va="center")
        for number, column in enumerate(columns):
            x = left + wide * number
            cell = cells.get((row, column))
            if cell:
                axes.add_patch(Rectangle((x, y), wide - 0.03, high - 0.03, facecolor=heat_color(cell),
                                         edgecolor=light("rule"), linewidth=0.4, gid=f"tip:{cell.tip}"))  # fmt: skip
            text = f"{cell.ratio:.2f}" if cell else "–"
            axes.text(x + wide / 2 - 0.015, y + high / 2 - 0.015, text, ha="center", va="center",
                      gid=f"tip:{cell.tip if cell else 'no ratio'}")  # fmt: skip
    return figure


def inline(svg: str) -> str:
    """What a page can hold: no prologue, no size but the view box, no ids of groups, tips as titles, and a hundredth of
    a point as the finest step."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<g id="tip:([^"]*)">', r"<g><title>\1</title>", svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r"(?<=\d\.\d\d)\d+", "", svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    svg = re.sub(r"<g>\n(<use [^>]*/>)\n</g>", r"\1", svg)
    svg = re.sub(r"(?<=[:;]) (?=[^\"<>]*\"/?>)", "", svg)
    return themed(svg).strip()


def save(figure: Figure, folder: Path, name: str, description: str) -> str:
    """Writes name.png (light) and name.svg (both schemes); returns what stands in the page."""
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.png", dpi=160, facecolor=light("page"))
        figure.set_layout_engine("none")  # it is laid out, and that is half of the time
        path = folder / f"{name}.svg"
        figure.savefig(path, transparent=True, metadata={"Date": None})
    svg = inline(path.read_text(encoding="utf-8"))
    label = f'<svg role="img" aria-label="{escape(description)}"'
    svg = svg.replace("<svg", label, 1)
    sheet = f"<style>{style_sheet()} :root {{ background: var(--page) }}</style>"
    path.write_text(svg.replace(">", f">{sheet}", 1) + "\n", encoding="utf-8")
    return svg
