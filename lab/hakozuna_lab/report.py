# SPDX-License-Identifier: Apache-2.0
"""`hz report`: one HTML page of stored results, with its pictures as PNG and SVG beside it. cells.py has the numbers,
plots.py draws, report.html.j2 is the page; here they are put together. Takes about a second for three pictures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from hakozuna_lab import LabError, overview, plots
from hakozuna_lab.cells import CellRows, Sweep, cell_rows, lines_and_others, remote_sweeps, thread_sweeps
from hakozuna_lab.palette import Style, style_sheet, styles
from hakozuna_lab.paths import RESULTS
from hakozuna_lab.rows import Row, counting_runs
from hakozuna_lab.stats import VERDICTS, Estimate
from hakozuna_lab.store import Results, load
from hakozuna_lab.tables import conditions, number, operations

TEMPLATE = "report.html.j2"
BAR_ENDS = 4  # the bars of the summary reach from 1/4 to 4
MIB = 1024
HEAT_LEGEND = [
    ("behind4", "below 0.5"),
    ("behind3", "to 0.67"),
    ("behind2", "to 0.91"),
    ("behind1", "to 1"),
    ("level", "level"),
    ("page", "unclear"),
    ("ahead1", "to 1.1"),
    ("ahead2", "to 1.5"),
    ("ahead3", "to 2"),
    ("ahead4", "above 2"),
]


@dataclass
class Report:
    """What the parts of the page have in common. `others` are names without settings."""

    folder: Path
    lines: list[str]
    others: list[str]
    cells: list[CellRows]
    styles: dict[str, Style]
    pictures: set[str] = field(default_factory=set)

    def save(self, figure: Figure, name: str, description: str) -> str:
        """What stands in the page. Names of files have no slashes and are not used twice."""
        name = name.replace("/", "-")
        if name in self.pictures:
            raise LabError(f"two pictures have the name {name}")
        self.pictures.add(name)
        return plots.save(figure, self.folder, name, description)


def bar(low: float, high: float) -> tuple[float, float]:
    """Where a bar begins and how wide it is, in percent of a logarithmic scale from 1/BAR_ENDS to BAR_ENDS."""
    left, right = (min(max(50 + 50 * math.log(ratio, BAR_ENDS), 0), 100) for ratio in (low, high))
    # What is off the scale, or very short, is still seen.
    left = min(left, 98)
    return round(left, 1), round(max(right - left, 2), 1)


def bars(ratio: Estimate | None) -> list[tuple[str, tuple[float, float]]]:
    if not ratio:
        return []
    return [("median", bar(min(ratio.median, 1), max(ratio.median, 1))), ("interval", bar(ratio.low, ratio.high))]


def marks(rows: Iterable[Row | None]) -> str:
    """What the reader must know of the runs of these rows; nothing if there is nothing."""
    there = [row for row in rows if row]
    counts = {"dirty": sum(row.dirty for row in there), "disturbed": sum(row.disturbed for row in there)}
    return ", ".join([f"{row.contender} failed: {row.failed}" for row in there if row.failed] +
                     [f"{count} {word}" for word, count in counts.items() if count])  # fmt: skip


def memory_pairs(ours: Row, theirs: Row | None) -> list[str]:
    rows = (ours, theirs or Row(ours.cell, "", 0))
    moments = ([row.peak_kib for row in rows], [row.idle_kib for row in rows], [row.after_kib for row in rows])
    return [" / ".join(number(kib, MIB, 1) for kib in pair) for pair in moments]


def summary_row(one: CellRows, line: str) -> dict[str, Any]:
    us, them = one.ours[line], one.fastest(line)
    ratio = them.ratio if them else None
    return {
        "cell": one.cell.id,
        "line": line,
        "ours": operations(us.speed.median) if us.speed else "-",
        "other": them.contender if them else "-",
        "theirs": operations(them.speed.median) if them and them.speed else "-",
        "ratio": ratio,
        "bars": bars(ratio),
        "verdict": (them and them.verdict) or "refused",
        "memory": memory_pairs(us, them),
        "marks": marks((us, them)),
    }


def scores(lines: Iterable[str], summary: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How often each line got which verdict."""
    found = []
    for line in lines:
        verdicts = [row["verdict"] for row in summary if row["line"] == line]
        counts = [(word, verdicts.count(word)) for word in VERDICTS if word != "refused" or word in verdicts]
        found.append({"line": line, "counts": counts})
    return found


def heat(report: Report, line: str) -> str:
    cells = {}
    for one in report.cells:
        for row in one.against(line):
            ratio, tip = row.ratio, f"{one.cell.id}: {line} / {row.contender}"
            if ratio and row.verdict:
                text = f"{tip} {ratio.median:.3f}, {ratio.low:.3f} to {ratio.high:.3f}: {row.verdict}"
                cells[one.cell.id, row.base] = plots.Heat(ratio.median, row.verdict, text)
    figure = plots.heat(f"{line} over each other", [one.cell.id for one in report.cells], report.others, cells)
    return report.save(figure, f"heat-{line}", f"Ratios of the throughput of {line} to that of every other allocator")


def scatter(report: Report, one: CellRows) -> str:
    points = {
        name: plots.Memory(row.speed.median, row.idle_kib / MIB, row.peak_kib / MIB)
        for name, row in one.shown().items()
        if row.speed and row.idle_kib is not None and row.peak_kib is not None
    }
    figure = plots.scatter(one.cell.id, points, report.styles)
    return report.save(figure, f"memory-{one.cell.id}", f"Throughput against memory in {one.cell.id}")


def scatters(report: Report) -> list[tuple[str, list[str]]]:
    """By family."""
    families: dict[str, list[str]] = {}
    for one in report.cells:
        if one.records:
            family = one.any_record().get("family", "programs")
            families.setdefault(family, []).append(scatter(report, one))
    return list(families.items())


def sweep(report: Report, kind: str, label: str, found: Sweep) -> str:
    series: dict[str, list[plots.Point]] = {}
    for x, one in found.cells.items():
        for name, row in one.shown().items():
            if row.speed:
                point = plots.Point(x, row.speed.median, row.speed.p25, row.speed.p75)
                series.setdefault(name, []).append(point)
    cell = next(iter(found.cells.values())).cell
    rest = [f"T{cell.threads}", cell.mode] if kind == "remote" else [cell.mode]
    if kind == "threads" and cell.remote is not None:
        rest.append(f"R{cell.remote}")
    blocks = ["untouched"] if not cell.touched else ["written"] if cell.written else []
    title = "/".join([found.title, *rest, *blocks])
    ticks = {float(x): str(x) for x in found.cells}
    figure = plots.curves(title, label, "ops/s", series, report.styles, ticks, log_x=kind == "threads")
    return report.save(figure, f"{kind}-{title}", f"Throughput of {title} by {label}")


def memory_series(report: Report, one: CellRows) -> str | None:
    """RSS over time: of a program by seconds, of a lane by the names of its phases. None where nothing was recorded."""
    series, ticks = {}, {}
    for name, row in one.shown().items():
        record = one.middle(row.contender)
        ended = record.get("load_ended", 0)
        pairs = [(second - ended, kib) for second, kib in record.get("rss_series", [])]
        for place, (label, kib) in enumerate(record.get("rss_series_kib", [])):
            ticks[float(place)] = label
            pairs.append((float(place), kib))
        if pairs:
            series[name] = [plots.Point(x, kib / MIB, kib / MIB, kib / MIB) for x, kib in pairs]
    if not series:
        return None
    label = "" if ticks else "seconds after the load ended" if "load_ended" in one.any_record() else "seconds"
    figure = plots.curves(one.cell.id, label, "RSS, MiB", series, report.styles, ticks)
    return report.save(figure, f"time-{one.cell.id}", f"Memory over time in {one.cell.id}")


def program_table(one: CellRows) -> dict[str, Any]:
    """Every setting of every allocator, the fastest first."""
    percentiles = list(dict.fromkeys(p for rs in one.records.values() for r in rs for p in r.get("latency_ms", {})))
    rows = [*one.ours.values(), *next(iter(one.others.values()), [])]
    measured = sorted(((row.speed, row) for row in rows if row.speed), key=lambda pair: -pair[0].median)
    made = [
        {
            "name": row.contender,
            "ops": operations(speed.median),
            "range": f"{operations(speed.p25)} – {operations(speed.p75)}",
            "latencies": [number(one.latency(row.contender, percentile)) for percentile in percentiles],
            "memory": [number(kib, MIB, 1) for kib in (row.peak_kib, row.idle_kib)],
        }
        for speed, row in measured
    ]
    failed = [f"{row.contender}: {row.failed}" for row in rows if row.failed]
    return {"name": one.cell.id, "percentiles": percentiles, "rows": made, "failed": failed}


def warnings(files: Sequence[Results]) -> list[str]:
    found = [f"{results.path.name} was interrupted; what is there is shown" for results in files if not results.end]
    digests: dict[str, set[str]] = {}
    for results in files:
        cells = counting_runs(results).values()
        counted = [run for names in cells for rounds in names.values() for run in rounds.values()]
        disturbed = sum(run.disturbed for run in counted)
        if disturbed:
            found.append(f"in {results.path.name} others disturbed {disturbed} of the {len(counted)} runs that count")
        for one in results.header.contenders:
            digests.setdefault(one.name, set()).add(one.sha256)
    return found + [f"{name} is not the same library in all files" for name, known in digests.items() if len(known) > 1]


def content(report: Report, files: Sequence[Results]) -> dict[str, Any]:
    """What the template fills in."""
    cells, headers = report.cells, [results.header for results in files]
    summary = [summary_row(one, line) for one in cells for line in one.ours]
    return {
        "title": f"{', '.join(report.lines)} beside {len(report.others)} other allocators",
        "subtitle": f"{len(cells)} workloads on {headers[0].cpu}, {headers[0].cpus} usable; {headers[0].id}",
        "style_sheet": style_sheet(),
        "warnings": warnings(files),
        "conditions": [conditions(results).removeprefix("- ").split("\n- ") for results in files],
        "scores": scores(report.lines, summary),
        "summary": summary,
        "heat_legend": HEAT_LEGEND,
        "heats": [heat(report, line) for line in report.lines] if report.others else [],
        "scatters": scatters(report),
        "thread_sweeps": [sweep(report, "threads", "threads", found) for found in thread_sweeps(cells)],
        "remote_sweeps": [sweep(report, "remote", "remote frees, %", found) for found in remote_sweeps(cells)],
        "series": [made for one in cells if one.records and (made := memory_series(report, one))],
        "programs": [program_table(one) for one in cells if one.cell.kind == "program"],
        "commands": [
            f"git checkout {headers[0].commit}",
            *(f"./{header.command}" for header in headers),
            "./hz report",
        ],
    }


def make(paths: Sequence[Path], folder: Path) -> Path:
    """Writes the page and its pictures; returns the page."""
    files = [load(path) for path in paths]
    lines, others = lines_and_others(files)
    if not lines:
        raise LabError("none of our lines is in these results")
    cells = cell_rows(files)
    if not cells:
        raise LabError("there is no run in these results")
    bases = list(dict.fromkeys(name.partition("+")[0] for name in others))
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(folder, lines, bases, cells, styles(lines, bases))
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = folder / "index.html"
    page.write_text(environment.get_template(TEMPLATE).render(content(report, files)), encoding="utf-8")
    return page


def latest() -> Path:
    stored = sorted(RESULTS.glob("*.jsonl"))
    if not stored:
        raise LabError(f"there are no results in {RESULTS}; hz bench makes them")
    return stored[-1]


def main(paths: Sequence[Path], folder: Path | None) -> None:
    """The page of these files, or of the latest results; in a folder beside the first of them unless told. Of a page of
    results that is written already (.md): the picture of its programs, beside it unless told."""
    chosen = list(paths) or [latest()]
    if any(path.suffix == ".md" for path in chosen):
        for page in chosen:
            print(*overview.make(page, folder or page.parent), sep="\n")
        return
    print(make(chosen, folder or chosen[0].with_suffix("")))
