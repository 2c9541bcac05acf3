# SPDX-License-Identifier: Apache-2.0
"""The remaining time, and what is printed where there is no terminal."""

import fakes
import pytest
from hakozuna_lab.contender import Contender
from hakozuna_lab.progress import Forecast, Progress, duration
from hakozuna_lab.schedule import tasks
from hakozuna_lab.store import Cell

CELLS = [Cell("lane", "fast", 2, "fair"), Cell("lane", "slow", 2, "fair")]
TODO = list(tasks(CELLS, [Contender("a", None), Contender("b", None)], range(3)))


def test_remaining_time_follows_what_each_cell_took() -> None:
    forecast = Forecast(TODO)
    forecast.finished(CELLS[0].id, 1.0)
    assert forecast.remaining() == 11
    forecast.finished(CELLS[1].id, 9.0)
    assert forecast.remaining() == 5 * 1 + 5 * 9
    forecast.finished(CELLS[1].id, 0.0)
    assert forecast.remaining() == 5 * 1 + 4 * 9


def test_duration() -> None:
    assert [duration(seconds) for seconds in (5, 100, 3599, 7500)] == [
        "under a minute",
        "2 min",
        "1 h 00 min",
        "2 h 05 min",
    ]


def test_a_line_per_run_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(TODO) as progress:
        for task, made in zip(TODO, (fakes.record(5, dirty=True), {"failed": "ended by SIGSEGV"}), strict=False):
            progress.report(fakes.run(task.cell, task.contender.name, 0, made, disturbed="failed" not in made))
            progress.finished(task)
    assert capsys.readouterr().err.splitlines() == [
        "fast/T2/fair a: 5.00 M ops/s, DIRTY, disturbed (1 of 12)",
        "fast/T2/fair b: FAILED: ended by SIGSEGV (2 of 12, under a minute left)",
    ]
