# SPDX-License-Identifier: Apache-2.0
"""`hz ab`: two lines, or one line with and without a setting, in pairs until each row is clear; the guard lanes are
always among the rows. Ends with the record to put into doc/decisions."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab import LabError, UsageError, catalogue
from hakozuna_lab.catalogue import Catalogue
from hakozuna_lab.comparison import LOOKS, Comparison, compare, is_clear
from hakozuna_lab.contender import Contender, find_line, line_names, parse_contender, parse_setting
from hakozuna_lab.decision import record
from hakozuna_lab.inventory import begin
from hakozuna_lab.machine import load, prepare
from hakozuna_lab.paths import LANE
from hakozuna_lab.progress import Progress
from hakozuna_lab.rows import counting_runs
from hakozuna_lab.runner import Runner
from hakozuna_lab.schedule import Session, tasks
from hakozuna_lab.selection import Wish, choose
from hakozuna_lab.store import Cell, End, Results, Selection, append

LANES = ("main_r0", "main_r50", "main_r90")  # if none are named


@dataclass(frozen=True)
class Request:
    words: Sequence[str]  # LINE_A LINE_B [lanes…], or with settings [LINE] [lanes…]
    settings: Sequence[str] = ()  # key=value, for side B
    threads: tuple[int, ...] = ()
    mode: str = "fair"
    iterations: int | None = None
    seed: int | None = None
    out: Path | None = None


def is_side(word: str) -> bool:
    return word in line_names() or "=" in word


def side(word: str) -> Contender:
    return parse_contender(word) if "=" in word else find_line(word)


def with_set(base: Contender, settings: Iterable[str]) -> Contender:
    """The same library with HZ_KEY set: its name says so."""
    env = {**base.env, **dict(parse_setting(text) for text in settings)}
    return Contender("+".join([base.name, *settings]), base.library, env, base.version)


def sides(request: Request) -> tuple[Contender, Contender, list[str]]:
    """A, B and the lanes."""
    words = list(request.words)
    if request.settings:
        base = side(words.pop(0) if words and is_side(words[0]) else line_names()[0])
        return base, with_set(base, request.settings), words
    if len(words) < 2:
        raise UsageError("it needs two lines (or NAME=LIBRARY), or --set key=value")
    a, b = side(words[0]), side(words[1])
    if a.name == b.name:
        raise UsageError(f"both sides have the name {a.name}")
    return a, b, words[2:]


def choose_cells(request: Request, words: Sequence[str], lanes: Catalogue) -> list[Cell]:
    """Those asked for, then the guard lanes."""
    asked, guards = (
        choose(
            Wish(words=chosen, threads=request.threads, modes=(request.mode,), iterations=request.iterations), lanes, {}
        )
        for chosen in (tuple(words) or LANES, ("guard",))
    )
    return list(dict.fromkeys([*asked, *guards]))


def main(request: Request, arguments: Sequence[str]) -> None:
    a, b, words = sides(request)
    lanes = catalogue.read(LANE)
    cells = choose_cells(request, words, lanes)
    selection = Selection(
        lanes=list(dict.fromkeys(cell.name for cell in cells)),
        threads=sorted({cell.threads for cell in cells}),
        modes=[request.mode],
        runs=LOOKS[-1],
        first=b.name,
        cells=cells,
        seed=request.seed,
    )
    runner = Runner(lanes, {}, LANE, request.seed)
    results = begin("ab", [a, b], selection, runner, shlex.join(["hz", "ab", *arguments]), request.out)
    prepare()
    try:
        comparisons = measure(results, [a, b], runner)
    except KeyboardInterrupt:
        raise LabError(f"interrupted; the runs until then are in {results.path}") from None
    guards = {name for name, lane in lanes.items() if lane.guard}
    print(record(results, comparisons, guards))
    print(f"hz: {results.path}", file=sys.stderr)


def measure(results: Results, contenders: Sequence[Contender], runner: Runner) -> list[Comparison]:
    """Pairs until every row is clear; a row that is clear takes no more of them."""
    a, b = (contender.name for contender in contenders)
    unclear = list(results.header.selection.cells)
    pairs_done = 0
    with Progress(list(tasks(unclear, contenders, range(LOOKS[-1])))) as progress:
        session = Session(results, runner.run, progress.report, screen=False)
        for look in LOOKS:
            for task in tasks(unclear, contenders, range(pairs_done, look)):
                session.perform(task)
                progress.finished(task)
            pairs_done = look
            by_cell = counting_runs(results)
            clear = [cell for cell in unclear if is_clear(compare(cell.id, by_cell[cell.id][a], by_cell[cell.id][b]))]
            progress.forget(list(tasks(clear, contenders, range(look, LOOKS[-1]))))
            unclear = [cell for cell in unclear if cell not in clear]
    results.end = End(load(), session.repeated())
    append(results.path, results.end)
    by_cell = counting_runs(results)
    return [compare(cell, by_cell[cell][a], by_cell[cell][b]) for cell in by_cell]
