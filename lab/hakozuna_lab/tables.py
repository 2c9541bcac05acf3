# SPDX-License-Identifier: Apache-2.0
"""Rows as tables: markdown for documents and pipes, Rich for a terminal; and the conditions under which they were
measured, without which a table says nothing."""

import csv
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from hakozuna_lab.rows import LATENCIES, Row
from hakozuna_lab.stats import VERDICTS, Estimate, Quartiles
from hakozuna_lab.store import Cell, Results, Run

TEXT_COLUMNS = 100  # what a text that is no terminal's may be wide
WIDE_COLUMNS = 140  # from here on a terminal gets quartiles and intervals, too
WHOLE = 1000  # from here on data have no decimals
MANY = 12  # cells that are listed one by one
STYLES = {"ahead": "green", "behind": "red", "level": "", "unclear": "dim", "refused": "yellow"}


def number(value: float | None, scale: float = 1.0, digits: int = 2) -> str:
    return "-" if value is None else f"{value / scale:.{digits}f}"


def operations(per_second: float) -> str:
    """Lanes do millions a second, programs thousands, a compilation a part of one."""
    for scale, letter in ((1e6, " M"), (1e3, " k")):
        if per_second >= scale:
            return f"{per_second / scale:.2f}{letter}"
    return f"{per_second:.3g}"


def spread(value: Quartiles | None) -> str:
    return f"{operations(value.median)} ({operations(value.p25)}..{operations(value.p75)})" if value else "refused"


def interval(value: Estimate | None) -> str:
    return f"{value.median:.3f} [{value.low:.3f}..{value.high:.3f}]" if value else "-"


def has_rested(rows: Sequence[Row]) -> bool:
    """Whether memory was read idle twice in any of them."""
    return any(row.rested_kib is not None for row in rows)


def headings(first: str, rested: bool) -> list[str]:
    return [
        "cell",
        "allocator",
        "ops/s: median (p25..p75)",
        f"{first} / this [95 %]",
        f"{first} is",
        "peak MiB",
        "idle MiB",
        *(["rested MiB"] if rested else []),
        "after MiB",
        "runs",
        "dirty",
        "disturbed",
    ]


def fields(row: Row, rested: bool) -> list[str]:
    return [
        row.cell,
        row.contender,
        f"failed: {row.failed}" if row.failed else spread(row.speed),
        interval(row.ratio),
        row.verdict or "-",
        number(row.peak_kib, 1024, 1),
        number(row.idle_kib, 1024, 1),
        *([number(row.rested_kib, 1024, 1)] if rested else []),
        number(row.after_kib, 1024, 1),
        str(row.runs),
        str(row.dirty),
        str(row.disturbed),
    ]


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in line) + " |" for line in lines
    )


def markdown(rows: Sequence[Row], first: str) -> str:
    rested = has_rested(rows)
    return markdown_table(headings(first, rested), [fields(row, rested) for row in rows])


def beside(row: Row, first: Row) -> str:
    """One cell of compact(): of speeds the first's to this one's, and in brackets this one's peak to the first's."""
    if row.failed or row.ratio is None:
        return "failed" if row.failed else "-"
    said = f" {row.verdict}" if row.verdict in ("ahead", "behind", "refused") else ""
    memory = f" ({row.peak_kib / first.peak_kib:.2f})" if row.peak_kib and first.peak_kib else ""
    return f"{row.ratio.median:.2f}{said}{memory}"


def compact(rows: Sequence[Row], first: str) -> str:
    """A row for each cell, a column for each allocator, so that it fits a screen; the last row has geometric means."""
    cells: dict[str, dict[str, Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, {})[row.base] = row
    others = list(dict.fromkeys(row.base for row in rows if row.base != first))
    body = []
    speeds: dict[str, list[float]] = {name: [] for name in others}
    peaks: dict[str, list[float]] = {name: [] for name in others}
    for cell, found in cells.items():
        ours = found[first]
        line = [cell, f"{operations(ours.speed.median)}, {number(ours.peak_kib, 1024, 1)}" if ours.speed else "-"]
        for name in others:
            theirs = found.get(name)
            line.append(beside(theirs, ours) if theirs else "-")
            if theirs and theirs.ratio and theirs.peak_kib and ours.peak_kib:
                speeds[name].append(theirs.ratio.median)
                peaks[name].append(theirs.peak_kib / ours.peak_kib)
        body.append(line)
    mean = statistics.geometric_mean
    means = [f"{mean(speeds[name]):.2f} ({mean(peaks[name]):.2f})" if speeds[name] else "-" for name in others]
    head = ["cell", f"{first}: ops/s, peak MiB", *others]
    return markdown_table(head, [*body, ["mean", "", *means]])


RATIO_COLUMNS = ("ratio", "ratio_low", "ratio_high")  # of the first allocator's speed to this one's, and its 95 %
DATA_COLUMNS = (
    *("cell", "allocator", "ops_per_s", "ops_p25", "ops_p75", *RATIO_COLUMNS, "verdict"),
    *("peak_mib", "idle_mib", "rested_mib", "after_mib", "runs", "dirty", "disturbed", "failed"),
)


def data_fields(row: Row) -> list[str]:
    speed, ratio = row.speed, row.ratio
    numbers: list[float | None] = [*((speed.median, speed.p25, speed.p75) if speed else (None,) * 3)]
    numbers += (ratio.median, ratio.low, ratio.high) if ratio else (None,) * 3
    memory = [row.peak_kib, row.idle_kib, row.rested_kib, row.after_kib]
    return [
        row.cell,
        row.contender,
        *("" if value is None else f"{value:.0f}" if value >= WHOLE else f"{value:.4g}" for value in numbers),
        row.verdict or "",
        *("" if kib is None else f"{kib / 1024:.1f}" for kib in memory),
        *(str(count) for count in (row.runs, row.dirty, row.disturbed)),
        row.failed,
    ]


def write_data(rows: Sequence[Row], path: Path) -> None:
    """What the table in markdown has, for programs: doc/results/rows/ keeps it. Columns that no row needs are left out;
    what is not known is empty."""
    lines = [data_fields(row) for row in rows]
    kept = [at for at, _ in enumerate(DATA_COLUMNS) if any(line[at] not in ("", "0") for line in lines)]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([DATA_COLUMNS[at] for at in kept])
        table.writerows([line[at] for at in kept] for line in lines)


def nanoseconds(value: float) -> str:
    """To three digits: a median is tens, the longest call millions."""
    for scale, unit in ((1e6, " ms"), (1e3, " us")):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.0f} ns"


def latency_headings() -> list[str]:
    return ["cell", "allocator", *(f"{call} {name}" for call in ("malloc", "free") for name in LATENCIES)]


def latency_fields(rows: Sequence[Row]) -> list[list[str]]:
    """Of the rows whose lane times every call; none if there is no such lane."""
    timed = [(row, row.latency_ns) for row in rows if row.latency_ns]
    return [
        [row.cell, row.contender, *(nanoseconds(value) for call in ("malloc", "free") for value in times[call])]
        for row, times in timed
    ]


def latency_markdown(rows: Sequence[Row]) -> list[str]:
    body = latency_fields(rows)
    return [markdown_table(latency_headings(), body)] if body else []


def rich_latency(rows: Sequence[Row]) -> list[Table]:
    """A table for each kind of call: together they are too wide for a terminal."""
    body = latency_fields(rows)
    tables = []
    for call, first in (("malloc", 2), ("free", 2 + len(LATENCIES))):
        table = Table(title=f"one {call}", title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0))
        for heading in ("cell", "allocator"):
            table.add_column(heading)
        for name in LATENCIES:
            table.add_column(name, justify="right")
        for line in body:
            table.add_row(*line[:2], *line[first : first + len(LATENCIES)])
        tables.append(table)
    return tables if body else []


def rich_tables(rows: Sequence[Row], first: str, wide: bool) -> list[Table]:
    """One per cell, with columns at the same places, for a terminal; a narrow one gets medians only."""
    rested = has_rested(rows)
    moments = ("peak", "idle", "rested", "after") if rested else ("peak", "idle", "after")
    tables: dict[str, Table] = {}
    for row in rows:
        if row.cell not in tables:
            table = Table(
                title=f"{row.cell}, memory in MiB",
                title_justify="left",
                title_style="bold",
                box=None,
                padding=(0, 1, 0, 0),
            )
            table.add_column("allocator", min_width=26 if wide else 16)
            table.add_column("ops/s", min_width=34 if wide else 9, justify="right")
            table.add_column(f"{first}/this", min_width=21 if wide else 6, justify="right")
            table.add_column("", min_width=7)
            table.add_column("".join(f"{moment:>7}" for moment in moments), min_width=7 * len(moments))
            table.add_column("")
            tables[row.cell] = table
        tables[row.cell].add_row(
            *terminal_fields(row, wide, rested), style=STYLES[row.verdict] if row.verdict else "bold"
        )
    return list(tables.values())


def terminal_fields(row: Row, wide: bool, rested: bool) -> list[str]:
    idle = (row.idle_kib, row.rested_kib) if rested else (row.idle_kib,)
    memory = "".join(f" {number(kib, 1024, 1):>6}" for kib in (row.peak_kib, *idle, row.after_kib))
    counts = ((row.dirty, "dirty"), (row.disturbed, "disturbed"))
    notes = [f"failed: {row.failed}"] if row.failed else [f"{count} {word}" for count, word in counts if count]
    if wide:
        numbers = [spread(row.speed), interval(row.ratio)]
    else:
        numbers = [operations(row.speed.median) if row.speed else "refused"]
        numbers += [number(row.ratio.median if row.ratio else None, digits=3)]
    return [row.contender, *numbers, row.verdict or "", memory, ", ".join(notes)]


def verdict_counts(rows: Sequence[Row], first: str) -> str:
    counted = [row.verdict for row in rows if row.verdict]
    text = ", ".join(f"{word} {counted.count(word)}" for word in VERDICTS)
    return f"{first} against the others, rows: {text}"


def iterations(cells: Sequence[Cell]) -> str:
    changed = sorted(f"{cell.id} {cell.iterations}" for cell in cells if cell.iterations is not None)
    if len(changed) > MANY:
        return f"as the command says in {len(changed)} cells, as the lanes define them in {len(cells) - len(changed)}"
    return ", ".join(changed) or "as the lanes define them"


def settled(cells: Sequence[Cell]) -> str:
    return ", ".join(str(time) for time in sorted({cell.settle or 50 for cell in cells}))


def rested(cells: Sequence[Cell]) -> str:
    times = ", ".join(str(time) for time in sorted({cell.rest for cell in cells if cell.rest is not None}))
    return f"rested: {times} ms after the end; " if times else ""


def cpu_shares(runs: Sequence[Run]) -> str:
    shares = [run.others_share for run in runs]
    return f"median {statistics.median(shares):.1%}, highest {max(shares):.1%}" if shares else "-"


def conditions(results: Results) -> str:
    """What a reader needs in order to repeat the table or to doubt it."""
    header, selection = results.header, results.header.selection
    disturbed = sum(run.disturbed for run in results.runs)
    repeated = sum(run.attempt > 1 for run in results.runs)
    after = results.end.load_after if results.end else "unknown (interrupted)"
    lines = [
        f"results: {results.path.name}; command: `{header.command}`",
        f"commit: {header.commit}{' with local changes' if header.changed else ''}",
        f"CPU: {header.cpu}, {header.cpus} usable; governor: {header.governor}",
        f"kernel: {header.kernel}; transparent huge pages: {header.thp}",
        f"program: {header.flags}; {selection.runs} rounds, a fresh process per run, order rotated every round",
        f"iterations per thread: {iterations(selection.cells)}",
        f"load: {header.load_before} before, {after} after",
        f"used by others during a run, as a share of the machine: {cpu_shares(results.runs)}; "
        f"{disturbed} of {len(results.runs)} runs disturbed (over 5 %), {repeated} repetitions",
        "peak and idle are without the harness's own memory; idle: all freed, threads parked, "
        f"{settled(selection.cells)} ms later; {rested(selection.cells)}after: threads joined, as much later",
    ]
    for one in header.contenders:
        setting = "".join(f" {key}={value}" for key, value in one.env.items())
        version = f" {one.version}" if one.version else ""
        lines.append(f"{one.name}{version}: {Path(one.library).name} sha256 {one.sha256}{setting}")
    return "\n".join(f"- {line}" for line in lines)
