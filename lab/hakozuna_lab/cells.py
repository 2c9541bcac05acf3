# SPDX-License-Identifier: Apache-2.0
"""Rows cell by cell, as the report needs them: our lines and the others apart, the fastest of the others, and the cells
that together are a sweep. Numbers only; report.py formats and plots.py draws them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from hakozuna_lab import LabError
from hakozuna_lab.rows import Row, better_settings, counting_runs, is_clean, make_rows
from hakozuna_lab.store import Cell, Results

Record = dict[str, Any]
SWEEP = 3  # points that make a curve


@dataclass
class CellRows:
    """`ours` has each line's own row, `others` the rows of all other allocators as judged against each line."""

    cell: Cell
    ours: dict[str, Row] = field(default_factory=dict)
    others: dict[str, list[Row]] = field(default_factory=dict)
    records: dict[str, list[Record]] = field(default_factory=dict)  # by contender, those that count

    def shown(self) -> dict[str, Row]:
        """Who is drawn, by name: our lines, and each other allocator in its better setting."""
        others = {row.base: row for row in self.against(next(iter(self.ours), ""))}
        return {name: row for name, row in (self.ours | others).items() if row.speed}

    def against(self, line: str) -> list[Row]:
        return better_settings(self.others.get(line, []))

    def fastest(self, line: str) -> Row | None:
        measured = [(row.speed.median, row) for row in self.others.get(line, []) if row.speed]
        return max(measured, key=lambda pair: pair[0])[1] if measured else None

    def any_record(self) -> Record:
        return next(iter(self.records.values()))[0]

    def middle(self, contender: str) -> Record:
        """The run whose peak is the median of the contender's runs (the lower one of two)."""
        ordered = sorted(self.records[contender], key=lambda record: float(record["rss_peak_kib"]))
        return ordered[(len(ordered) - 1) // 2]

    def latency(self, contender: str, percentile: str) -> float | None:
        found = [record.get("latency_ms", {}).get(percentile) for record in self.records[contender]]
        values = [value for value in found if value is not None]
        return median(values) if values else None


def lines_and_others(files: Iterable[Results]) -> tuple[list[str], list[str]]:
    """All contenders in the order of the files; ours are known by the name of their library."""
    known = {c.name: Path(c.library).name for results in files for c in results.header.contenders}
    lines = [name for name, library in known.items() if library.startswith("libhakozuna-")]
    return lines, [name for name in known if name not in lines]


def cell_rows(files: Sequence[Results]) -> list[CellRows]:
    """All cells in the order of the files, without those that nobody ran. A cell must not stand in two files."""
    made: dict[str, CellRows] = {}
    for results in files:
        cells = {cell.id: CellRows(cell) for cell in results.header.selection.cells}
        twice = sorted(cells.keys() & made.keys())
        if twice:
            raise LabError(f"{results.path}: {twice[0]} stands in another file, too")
        lines, _ = lines_and_others([results])
        for line in lines:
            for row in make_rows(results, line):
                if row.contender == line:
                    cells[row.cell].ours[line] = row
                elif row.contender not in lines:
                    cells[row.cell].others.setdefault(line, []).append(row)
        for name, contenders in counting_runs(results).items():
            clean = {c: [run.record for run in rounds.values() if is_clean(run)] for c, rounds in contenders.items()}
            cells[name].records = {contender: records for contender, records in clean.items() if records}
        made |= {name: cell for name, cell in cells.items() if cell.ours}
    return list(made.values())


@dataclass(frozen=True)
class Sweep:
    """Cells that differ in one number only, by that number."""

    title: str
    cells: dict[int, CellRows]


def sweeps(groups: Iterable[dict[int, CellRows]]) -> list[Sweep]:
    found = []
    for cells in groups:
        if len(cells) >= SWEEP:
            names = [one.cell.name for _, one in sorted(cells.items())]
            # main_local0, main_interleaved_r50, main_interleaved_r90: main_interleaved
            title = names[0] if len(set(names)) == 1 else re.sub(r"_r\d+$", "", names[-1])
            found.append(Sweep(title, dict(sorted(cells.items()))))
    return found


def thread_sweeps(cells: Iterable[CellRows]) -> list[Sweep]:
    groups: dict[Any, dict[int, CellRows]] = {}
    for one in cells:
        cell = one.cell
        if cell.kind == "lane" and one.records:
            key = (cell.name, cell.mode, cell.remote, cell.touched, cell.written, cell.settle)
            groups.setdefault(key, {})[cell.threads] = one
    return sweeps(groups.values())


def remote_sweeps(cells: Iterable[CellRows]) -> list[Sweep]:
    """Of lanes whose definitions, as run, differ in the share of remote frees alone."""
    groups: dict[Any, dict[int, CellRows]] = {}
    for one in cells:
        definition = one.any_record().get("definition", {}) if one.records else {}
        if "remote_percent" in definition:
            rest = sorted(item for item in definition.items() if item[0] != "remote_percent")
            key = (
                one.any_record()["family"],
                str(rest),
                one.cell.mode,
                one.cell.threads,
                one.cell.touched,
                one.cell.written,
                one.cell.settle,
            )
            groups.setdefault(key, {}).setdefault(definition["remote_percent"], one)
    return sweeps(groups.values())
