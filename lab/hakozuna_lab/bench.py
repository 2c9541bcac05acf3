# SPDX-License-Identifier: Apache-2.0
"""`hz bench`: measures lines against peers, cell by cell, and prints the table. Ctrl-C loses one run at most."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hakozuna_lab import LabError, UsageError, aftermath, catalogue, tables
from hakozuna_lab.contender import Contender, find_line, line_names, parse_contender, with_settings
from hakozuna_lab.inventory import begin, resume
from hakozuna_lab.machine import load, prepare
from hakozuna_lab.paths import LANE, RESULTS
from hakozuna_lab.peer_list import PEERS
from hakozuna_lab.peers import find, find_peers
from hakozuna_lab.programs import PROGRAMS
from hakozuna_lab.progress import Progress
from hakozuna_lab.rows import better_settings, make_rows
from hakozuna_lab.runner import Runner
from hakozuna_lab.schedule import Session, tasks
from hakozuna_lab.selection import Wish, choose
from hakozuna_lab.store import End, Results, Selection, append, cut_half_line
from hakozuna_lab.store import load as load_results


@dataclass(frozen=True)
class Request:
    wish: Wish
    lines: Sequence[str] = ()
    peers: Sequence[str] = ()  # none named: all, of --quick the newest of each allocator
    extra: Sequence[str] = ()  # NAME=LIBRARY
    env: Sequence[str] = ()  # CONTENDER=KEY=VALUE
    runs: int | None = None
    seed: int | None = None
    out: Path | None = None


def find_contenders(request: Request) -> list[Contender]:
    words = {"": line_names()[:1], "all": line_names(), "none": []}
    contenders = [find_line(name) for name in words.get(",".join(request.lines), list(request.lines))]
    peers = list(request.peers) or ["newest" if request.wish.quick else "all"]
    if peers != ["none"]:
        contenders += find_peers(peers)
        say_who_is_missing(contenders)
    contenders += [parse_contender(text) for text in request.extra]
    if not contenders:
        raise UsageError("nothing to measure: no lines and no peers")
    return with_settings(contenders, request.env)


def say_who_is_missing(contenders: Sequence[Contender]) -> None:
    """A group of peers is made of those that are here; a table that lacks some must not look complete."""
    present = {contender.base for contender in contenders}
    for found in map(find, PEERS):
        if found.lacks and found.peer.name not in present:
            print(f"hz: without {found.peer.name}: {found.lacks}", file=sys.stderr)


def main(request: Request, arguments: Sequence[str]) -> None:
    contenders = find_contenders(request)
    lanes = catalogue.read(LANE)
    wish = request.wish
    cells = choose(wish, lanes, PROGRAMS)
    selection = Selection(
        lanes=list(dict.fromkeys(cell.name for cell in cells)),
        threads=sorted({cell.threads for cell in cells if cell.threads}),
        modes=list(dict.fromkeys(cell.mode for cell in cells if cell.mode)),
        runs=request.runs or (5 if wish.quick else 7),
        first=contenders[0].name,
        cells=cells,
        seed=request.seed,
    )
    name = "quick" if wish.quick else wish.sweep or ("full" if wish.full else "bench")
    runner = Runner(lanes, PROGRAMS, LANE, request.seed)
    command = shlex.join(["hz", "bench", *arguments])
    results = begin(name, contenders, selection, runner, command, request.out)
    measure_all(results, contenders, runner)


def go_on(path: Path | None) -> None:
    """Goes on with an interrupted file, the latest one if none is named."""
    results = load_results(path or latest())
    if results.end:
        raise LabError(f"{results.path} is complete")
    runner = Runner(catalogue.read(LANE), PROGRAMS, LANE, results.header.selection.seed)
    contenders = resume(results, runner)
    cut_half_line(results.path)
    measure_all(results, contenders, runner)


def latest() -> Path:
    files = sorted(RESULTS.glob("*.jsonl"))
    if not files:
        raise LabError(f"there are no results in {RESULTS}")
    return files[-1]


def measure_all(results: Results, contenders: Sequence[Contender], runner: Runner) -> None:
    selection = results.header.selection
    todo = list(tasks(selection.cells, contenders, range(selection.runs)))
    prepare()
    try:
        with Progress(todo) as progress:
            session = Session(results, runner.run, progress.report)
            for task in todo:
                session.perform(task)
                progress.finished(task)
    except KeyboardInterrupt:
        show(results)
        raise LabError(f"interrupted; go on with: hz bench --resume {results.path}") from None
    results.end = End(load(), session.repeated())
    append(results.path, results.end)
    show(results)


def show(results: Results) -> None:
    """The tables, 100 columns wide where there is no terminal; beside the results all columns and the conditions in
    markdown, and the rows as data."""
    rows = better_settings(make_rows(results))
    first = results.header.selection.first
    parts = [tables.conditions(results), tables.compact(rows, first)]
    parts += [tables.markdown(rows, first), *tables.latency_markdown(rows)]
    parts += [*aftermath.markdown(results), tables.verdict_counts(rows, first)]
    parts += ["Of an allocator that ran in several settings, each cell shows the fastest."]
    text = "\n\n".join(parts) + "\n"
    document = results.path.with_suffix(".md")
    document.write_text(text, encoding="utf-8")
    data = results.path.with_suffix(".csv")
    tables.write_data(rows, data)
    console = Console(width=None if sys.stdout.isatty() else tables.TEXT_COLUMNS)
    for table in [*tables.rich_tables(rows, first, console.width >= tables.WIDE_COLUMNS), *tables.rich_latency(rows)]:
        console.print(table, "")
    console.print(tables.verdict_counts(rows, first))
    print(f"hz: {results.path}, {document.name} and {data.name}", file=sys.stderr)
