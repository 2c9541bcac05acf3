# SPDX-License-Identifier: Apache-2.0
"""One run: what the program is started with, what is refused, and that the real one under a library that the loader
ignores is found out."""

from dataclasses import replace
from pathlib import Path

import pytest
from hakozuna_lab import LabError, RunError, catalogue
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import LANE
from hakozuna_lab.runner import Runner, lane_arguments
from hakozuna_lab.store import Cell

CELL = Cell("lane", "guard_r50", 2, "fair")
LIBC = Contender("glibc", None)


def with_env(contender: Contender, **env: str) -> Contender:
    return replace(contender, env=env)


def test_arguments(runner: Runner) -> None:
    cell = Cell("lane", "guard_r50", 16, "upstream", remote=0, iterations=9, touched=False)
    arguments = "--lane guard_r50 --mode upstream --threads 16 --iterations 9 --remote 0 --seed 5 --untouched"
    assert lane_arguments(runner.lanes, cell, 5) == arguments.split()
    written = Cell("lane", "guard_r50", 2, "fair", written=True)
    assert lane_arguments(runner.lanes, written, None)[-1] == "--written"
    settled = Cell("lane", "solo", 1, "fair", settle=1000)
    assert lane_arguments(runner.lanes, settled, None) == ["--lane", "solo", "--mode", "fair", "--settle", "1000"]
    rested = Cell("lane", "solo", 1, "fair", rest=1000)
    assert lane_arguments(runner.lanes, rested, None) == ["--lane", "solo", "--mode", "fair", "--rest", "1000"]
    assert lane_arguments(runner.lanes, Cell("lane", "solo", 1, "fair"), None) == ["--lane", "solo", "--mode", "fair"]


def test_a_record(runner: Runner, mine: Contender) -> None:
    made = runner.run(CELL, with_env(mine, HZ_RETAIN="200"))
    assert (made["allocator_file"], made["retain"]) == (str(mine.library), "200")


def test_another_allocator_is_an_error(runner: Runner, mine: Contender) -> None:
    with pytest.raises(LabError, match="mine: asked for"):
        runner.run(CELL, with_env(mine, FAKE='{"allocator_file": "/usr/lib/libc.so.6"}'))


def test_another_lane_is_an_error(runner: Runner) -> None:
    with pytest.raises(LabError, match="mislabelled lane: lane is main_r50, expected guard_r50"):
        runner.run(CELL, with_env(LIBC, FAKE='{"lane": "main_r50"}'))


def test_a_crash_is_the_contenders(runner: Runner) -> None:
    for status, message in (("-11", "ended by SIGSEGV"), ("-9", "out of memory"), ("1", "ended with status 1: oops")):
        with pytest.raises(RunError, match=message):
            runner.run(CELL, with_env(LIBC, FAKE_EXIT=status, FAKE_SAYS="oops"))


def test_a_run_without_end_is_the_contenders(runner: Runner) -> None:
    with pytest.raises(RunError, match="no end after 0 s"):
        replace(runner, timeout=0.1).run(CELL, with_env(LIBC, FAKE_SLEEP="10"))


def test_options_that_the_program_refuses_are_ours(runner: Runner) -> None:
    with pytest.raises(LabError, match="wrong option") as caught:
        runner.run(CELL, with_env(LIBC, FAKE_EXIT="2", FAKE_SAYS="wrong option"))
    assert not isinstance(caught.value, RunError)


def test_a_setting_that_is_not_understood_is_an_error(runner: Runner, mine: Contender) -> None:
    with pytest.raises(LabError, match="HZ_RETAIN=banana not understood"):
        runner.run(CELL, with_env(mine, FAKE_SAYS="hz: warning: HZ_RETAIN=banana not understood"))


def test_a_preload_without_effect_is_an_error(mine: Contender) -> None:
    """The loader ignores what is no library, says so on stderr, and the program runs on the C library."""
    runner = Runner(catalogue.read(LANE), {}, LANE)
    cell = Cell("lane", "guard_r50", 2, "fair", iterations=10)
    assert Path(runner.run(cell, LIBC)["allocator_file"]).name.startswith("libc.so")
    with pytest.raises(LabError, match=r"mine: asked for .*libmine.so, but malloc came from .*libc.so"):
        runner.run(cell, mine)
