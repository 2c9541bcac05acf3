# SPDX-License-Identifier: Apache-2.0
"""The order of runs, what is repeated and how often, and going on where one stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from hakozuna_lab import RunError
from hakozuna_lab.contender import Contender
from hakozuna_lab.machine import CpuTimes
from hakozuna_lab.schedule import Session, Task, tasks
from hakozuna_lab.store import Cell, Results, append, load

CELLS = [Cell("lane", "guard_r50", 2, "fair"), Cell("lane", "main_r50", 2, "fair")]
A, B, C = (Contender(name, None) for name in "abc")
Measure = Callable[[Cell, Contender], dict[str, Any]]


def quiet() -> CpuTimes:
    return CpuTimes(0, 0, 0)


def session(path: Path, measure: Measure, clock: Callable[[], CpuTimes] = quiet) -> Session:
    made = Results(path, fakes.header(["a", "b", "c"], CELLS))
    append(path, made.header)
    return Session(made, measure, clock=clock)


def test_interleaved_and_rotated() -> None:
    order = list(tasks(CELLS, [A, B, C], range(4)))
    first = [task.contender.name for task in order if task.cell is CELLS[0]]
    assert "".join(first) == "abcbcacababc"
    assert [task.round for task in order] == [number for number in range(4) for _ in range(6)]
    assert [task.cell.name for task in order[:6]] == ["guard_r50"] * 3 + ["main_r50"] * 3


def test_a_quiet_clean_run_is_made_once(tmp_path: Path) -> None:
    one = session(tmp_path / "x.jsonl", lambda cell, contender: fakes.record(1))
    one.perform(Task(CELLS[0], A, 0))
    (run,) = load(tmp_path / "x.jsonl").runs
    assert (run.contender, run.attempt, run.disturbed, run.others_share) == ("a", 1, False, 0)
    assert one.repeated() == 0


def test_disturbed_runs_are_repeated_three_times_and_then_kept(tmp_path: Path) -> None:
    def clock() -> CpuTimes:
        times.append(len(times) + 1)
        return CpuTimes(times[-1], times[-1] * 100, 0)

    times = [0]
    one = session(tmp_path / "x.jsonl", lambda cell, contender: fakes.record(1), clock)
    one.perform(Task(CELLS[0], A, 0))
    assert [(run.attempt, run.disturbed) for run in one.results.runs] == [(n, True) for n in (1, 2, 3, 4)]
    assert one.repeated() == 3


def test_a_disturbance_that_ends(tmp_path: Path) -> None:
    busy = iter([0, 100, 100, 100])
    one = session(tmp_path / "x.jsonl", lambda c, d: fakes.record(1), lambda: CpuTimes(0, next(busy), 0))
    one.perform(Task(CELLS[0], A, 0))
    assert [(run.attempt, run.disturbed) for run in one.results.runs] == [(1, True), (2, False)]


def test_dirty_runs_are_repeated_until_it_is_hopeless(tmp_path: Path) -> None:
    one = session(tmp_path / "x.jsonl", lambda cell, contender: fakes.record(1, dirty=True))
    for number in range(3):
        one.perform(Task(CELLS[0], A, number))
    assert [run.round for run in one.results.runs] == [0, 0, 0, 0, 1, 2]


def test_a_contender_that_fails_is_not_tried_again_in_that_cell(tmp_path: Path) -> None:
    def crash(cell: Cell, contender: Contender) -> dict[str, Any]:
        tried.append((cell.name, contender.name))
        if contender is B:
            raise RunError("ended by SIGSEGV")
        return fakes.record(1)

    tried: list[tuple[str, str]] = []
    one = session(tmp_path / "x.jsonl", crash)
    for task in tasks(CELLS, [A, B], range(3)):
        one.perform(task)
    assert tried.count(("guard_r50", "b")) == tried.count(("main_r50", "b")) == 1
    assert tried.count(("guard_r50", "a")) == 3
    failed = [run for run in load(tmp_path / "x.jsonl").runs if run.contender == "b"]
    assert [run.record for run in failed] == [{"failed": "ended by SIGSEGV"}] * 2


def test_going_on_makes_what_is_missing(tmp_path: Path) -> None:
    def until_stopped(cell: Cell, contender: Contender) -> dict[str, Any]:
        made.append(contender.name)
        if len(made) == 5:
            raise KeyboardInterrupt
        return fakes.record(1)

    made: list[str] = []
    path = tmp_path / "x.jsonl"
    order = list(tasks(CELLS, [A, B], range(2)))
    one = session(path, until_stopped)
    with pytest.raises(KeyboardInterrupt):
        for task in order:
            one.perform(task)
    again = Session(load(path), until_stopped, clock=quiet)
    for task in order:
        again.perform(task)
    assert len(made) == len(order) + 1
    assert {(run.cell, run.contender, run.round) for run in load(path).runs} == {
        (task.cell.id, task.contender.name, task.round) for task in order
    }


def test_a_setting_that_another_one_beats_is_not_run_on(tmp_path: Path) -> None:
    speeds = {"a": 1, "a+x": 2, "b": 4, "b+x": 3, "b+y": 4}
    contenders = [Contender(name, None) for name in speeds]
    made = Results(tmp_path / "x.jsonl", fakes.header(list(speeds), CELLS[:1]))
    one = Session(made, lambda cell, contender: fakes.record(speeds[contender.name]), clock=quiet)
    for task in tasks(CELLS[:1], contenders, range(5)):
        one.perform(task)
    counts = {name: sum(run.contender == name for run in made.runs) for name in speeds}
    assert counts == {"a": 5, "a+x": 5, "b": 5, "b+x": 3, "b+y": 5}


def test_what_was_dirty_early_is_not_beaten(tmp_path: Path) -> None:
    made = Results(tmp_path / "x.jsonl", fakes.header(["a", "b", "b+x"], CELLS[:1]))
    one = Session(made, lambda cell, contender: fakes.record(1), clock=quiet)
    for number in range(3):
        one.last[CELLS[0].id, "b", number] = fakes.run(CELLS[0], "b", number, fakes.record(2))
        slow = fakes.record(1, dirty=number == 1)
        one.last[CELLS[0].id, "b+x", number] = fakes.run(CELLS[0], "b+x", number, slow, attempt=4)
    assert not one.done(Task(CELLS[0], Contender("b+x", None), 3))
    one.last[CELLS[0].id, "b+x", 1] = fakes.run(CELLS[0], "b+x", 1, fakes.record(1))
    assert one.done(Task(CELLS[0], Contender("b+x", None), 3))
