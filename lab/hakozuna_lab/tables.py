# SPDX-License-Identifier: Apache-2.0
"""Rows as tables: markdown for documents and pipes, Rich for a terminal; and the conditions under which they were
measured, without which a table says nothing."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from hakozuna_lab.rows import Row
from hakozuna_lab.stats import Estimate, Quartiles
from hakozuna_lab.store import Cell, Results, Run

MANY = 12  # cells that are listed one by one
STYLES = {"ahead": "green", "behind": "red", "level": "", "refused": "yellow"}


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


def headings(first: str) -> list[str]:
    return [
        "cell",
        "allocator",
        "ops/s: median (p25..p75)",
        f"{first} / this [95 %]",
        f"{first} is",
        "peak MiB",
        "idle MiB",
        "after MiB",
        "runs",
        "dirty",
        "disturbed",
    ]


def fields(row: Row) -> list[str]:
    return [
        row.cell,
        row.contender,
        f"failed: {row.failed}" if row.failed else spread(row.speed),
        interval(row.ratio),
        row.verdict or "-",
        number(row.peak_kib, 1024, 1),
        number(row.idle_kib, 1024, 1),
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
    return markdown_table(headings(first), [fields(row) for row in rows])


def rich_tables(rows: Sequence[Row], first: str, wide: bool) -> list[Table]:
    """One per cell, with columns at the same places, for a terminal; a narrow one gets medians only."""
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
            table.add_column("allocator", min_width=26 if wide else 18)
            table.add_column("ops/s", min_width=34 if wide else 9, justify="right")
            table.add_column(f"{first}/this", min_width=21 if wide else 6, justify="right")
            table.add_column("", min_width=7)
            table.add_column(f"{'peak':>6}{'idle':>6}{'after':>6}", min_width=18)
            table.add_column("")
            tables[row.cell] = table
        tables[row.cell].add_row(*terminal_fields(row, wide), style=STYLES[row.verdict] if row.verdict else "bold")
    return list(tables.values())


def terminal_fields(row: Row, wide: bool) -> list[str]:
    memory = "".join(f"{number(kib, 1024, 1):>6}" for kib in (row.peak_kib, row.idle_kib, row.after_kib))
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
    text = ", ".join(f"{word} {counted.count(word)}" for word in ("ahead", "level", "behind", "refused"))
    return f"{first} against the others, rows: {text}"


def iterations(cells: Sequence[Cell]) -> str:
    changed = sorted(f"{cell.id} {cell.iterations}" for cell in cells if cell.iterations is not None)
    if len(changed) > MANY:
        return f"as the command says in {len(changed)} cells, as the lanes define them in {len(cells) - len(changed)}"
    return ", ".join(changed) or "as the lanes define them"


def settled(cells: Sequence[Cell]) -> str:
    return ", ".join(str(time) for time in sorted({cell.settle or 50 for cell in cells}))


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
        f"{settled(selection.cells)} ms later; after: threads joined, as much later",
    ]
    for one in header.contenders:
        setting = "".join(f" {key}={value}" for key, value in one.env.items())
        version = f" {one.version}" if one.version else ""
        lines.append(f"{one.name}{version}: {Path(one.library).name} sha256 {one.sha256}{setting}")
    return "\n".join(f"- {line}" for line in lines)
