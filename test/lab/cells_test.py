# SPDX-License-Identifier: Apache-2.0
"""Cells of the report: who is ours, who is fastest, what is a sweep; with numbers whose answers are known."""

from pathlib import Path

import made_up
import pytest
from hakozuna_lab import LabError
from hakozuna_lab.cells import CellRows, cell_rows, lines_and_others, remote_sweeps, thread_sweeps
from hakozuna_lab.store import Cell, End, Results, Run, load

GUARD = Cell("lane", "guard_r50", 2, "fair")


def results(speeds: dict[str, list[float]], cells: list[Cell] | None = None) -> Results:
    """Every contender with these speeds, one per round, in every cell."""
    cells = cells or [GUARD]
    runs = [
        Run(cell.kind, cell.id, name, number, 1, 0, False, made_up.lane_record(cell, speed, 4096 + number))
        for cell in cells
        for name, of_rounds in speeds.items()
        for number, speed in enumerate(of_rounds)
    ]
    return Results(Path("x.jsonl"), made_up.header(list(speeds), cells, 3), runs, End("0", 0))


def test_ours_are_known_by_their_library() -> None:
    assert lines_and_others([results({"glibc": [1], "hz3": [1], "hz3-fast": [1]})]) == (["hz3", "hz3-fast"], ["glibc"])


def test_the_fastest_other_and_the_better_setting() -> None:
    speeds = {"hz3": [6.0] * 5, "hz3-fast": [9.0] * 5, "b": [3.0] * 5, "b+y": [2.0] * 5}
    speeds |= {"a": [1.0, 2, 3, 1, 3], "a+x": [4.0, 4, 5, 5, 3]}
    (one,) = cell_rows([results(speeds)])
    fastest = one.fastest("hz3")
    assert fastest and fastest.ratio
    assert (fastest.contender, fastest.ratio.median, fastest.verdict) == ("a+x", 1.5, "ahead")
    fastest = one.fastest("hz3-fast")
    assert fastest and fastest.ratio and fastest.ratio.median == 2.25
    assert {name: row.contender for name, row in one.shown().items()} == {
        "hz3": "hz3",
        "hz3-fast": "hz3-fast",
        "a": "a+x",
        "b": "b",
    }
    assert one.middle("b")["rss_peak_kib"] == 4098 + 1024


def test_dirty_and_failed_runs_have_no_records(tmp_path: Path) -> None:
    one = cell_rows([load(made_up.write(tmp_path / "x.jsonl", cells=made_up.CELLS[:1]))])[0]
    assert "scudo" not in one.records
    assert (len(one.records["snmalloc"]), len(one.records["glibc"])) == (made_up.ROUNDS - 1, made_up.ROUNDS)
    assert "snmalloc" in one.shown()
    assert "scudo" not in one.shown()


def test_without_others_or_runs() -> None:
    (one,) = cell_rows([results({"hz3": [6.0]})])
    assert one.fastest("hz3") is None
    assert list(one.shown()) == ["hz3"]
    assert cell_rows([results({"hz3": [], "a": []})]) == []


def test_a_cell_in_two_files() -> None:
    same = results({"hz3": [6.0]})
    with pytest.raises(LabError, match="guard_r50/T2/fair stands in another file"):
        cell_rows([same, same])


def test_latency_is_the_median_of_the_runs_that_have_it() -> None:
    records = [{"latency_ms": {"p50": 1.0}}, {"latency_ms": {"p50": 3.0}}, {"latency_ms": {"p50": 2.0}}, {}]
    one = CellRows(GUARD, records={"a": records})
    assert (one.latency("a", "p50"), one.latency("a", "p99")) == (2, None)


def test_sweeps() -> None:
    cells = [Cell("lane", "guard_r50", threads, "fair") for threads in (4, 1, 2)]
    cells += [Cell("lane", lane, 2, "fair") for lane in ("guard_r0", "guard_r90", "main_r0", "main_r90")]
    cells += [Cell("lane", "guard_r50", 2, "fair", remote=10), Cell("lane", "larson", 2, "fair")]
    made = cell_rows([results({"hz3": [6.0]}, cells)])
    (threads,) = thread_sweeps(made)
    assert (threads.title, list(threads.cells)) == ("guard_r50", [1, 2, 4])
    # main has two points only; another thread count is another sweep.
    (remote,) = remote_sweeps(made)
    assert (remote.title, list(remote.cells)) == ("guard", [0, 10, 50, 90])
    assert remote.cells[10].cell.remote == 10


def test_sweeps_of_two_families_have_two_titles() -> None:
    made = []
    for names, family in (
        (("main_r0", "main_r50", "main_r90"), "ring"),
        (("main_local0", "main_interleaved_r50", "main_interleaved_r90"), "interleaved"),
    ):
        for name, remote in zip(names, (0, 50, 90), strict=True):
            record = {"family": family, "definition": {"remote_percent": remote}}
            made.append(CellRows(Cell("lane", name, 2, "fair"), records={"hz3": [record]}))
    assert [found.title for found in remote_sweeps(made)] == ["main", "main_interleaved"]
