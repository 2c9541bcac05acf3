# SPDX-License-Identifier: Apache-2.0
"""test/matrix.toml and how it is read: that three turns see all, that no line and no folder is forgotten."""

from pathlib import Path

import pytest
from hakozuna_lab import checks, matrix
from hakozuna_lab.matrix import Cell, Run
from hakozuna_lab.paths import ROOT

EVERYTHING = Run(1, everything=True)
SMALL = """
[groups]
core = "a"
others = "b c"
checked = "asan"
[turns]
1 = "b"
2 = "c a"
[presets.release]
share = 60
brief = "others"
[presets.asan]
share = 40
whole = "src/os"
[parts.unit]
release = "once"
checked = "~once"
[parts.stress]
daily = "a"
release = "core ~others"
asan = "~a"
[parts.lab]
release = "~once"
whole = "lab"
[[tests]]
names = 'Long$'
out = "daily"
turn = "release"
why = "it is"
"""


@pytest.fixture
def small(tmp_path: Path) -> matrix.Matrix:
    file = tmp_path / "matrix.toml"
    file.write_text(SMALL, encoding="utf-8")
    return matrix.read(file)


def names(cells: list[Cell]) -> list[str]:
    return [str(cell) for cell in cells]


def test_what_is_run_by_turn(small: matrix.Matrix) -> None:
    assert names(small.cells("daily", Run(1))) == ["stress/a"]
    lab = matrix.by_name("lab")
    for turn, lines in ((1, ["a", "b"]), (2, ["a", "c"]), (3, ["a"])):
        expected = ["unit/once", *(f"stress/{line}" for line in lines), *(["lab/once"] if lab == turn else [])]
        assert names(small.cells("release", Run(turn))) == expected
    assert names(small.cells("release", EVERYTHING)) == ["unit/once", "stress/a", "stress/b", "stress/c", "lab/once"]


def test_what_changed_is_run_whole(small: matrix.Matrix) -> None:
    turn = next(turn for turn in (1, 3) if turn != matrix.by_name("unit"))
    assert names(small.cells("asan", Run(turn, ("src/oslo.cpp",)))) == []
    assert names(small.cells("asan", Run(turn, ("src/os/linux.cpp",)))) == ["unit/once", "stress/a"]
    assert "lab/once" in names(small.cells("release", Run(1 + matrix.by_name("lab") % 3, ("lab/x.py",))))


def test_single_tests_are_left_out(small: matrix.Matrix) -> None:
    assert small.leaves_out("daily", "stress.a.direct.Long", Run(1))
    assert not small.leaves_out("daily", "stress.a.direct.Short", Run(1))
    runs = [not small.leaves_out("release", "stress.a.direct.Long", Run(turn)) for turn in (1, 2, 3)]
    assert sorted(runs) == [False, False, True]
    # Of b the part is run by turn: the test has no second one.
    assert not any(small.leaves_out("release", "stress.b.direct.Long", Run(turn)) for turn in (1, 2, 3))


@pytest.mark.parametrize("wrong", ['relase = "once"', 'machines = "once"'])
def test_a_preset_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(SMALL + f"[parts.odd]\n{wrong}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="part odd"):
        matrix.read(file)


def test_three_turns_see_all() -> None:
    table = matrix.read()
    for preset in table.presets():
        turns = [set(table.cells(preset, Run(turn))) for turn in (1, 2, 3)]
        assert set.union(*turns) == set(table.cells(preset, EVERYTHING)), preset
        assert set.intersection(*turns) <= turns[0]


def test_every_folder_and_every_line_is_run() -> None:
    table = matrix.read()
    folders = {file.parent.name for file in (ROOT / "test").glob("*/CMakeLists.txt")}
    assert {part.name.partition(".")[0] for part in table.parts} == folders
    source = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8").partition("set(HZ_LINES")[2].partition(")")[0]
    known = {row.split()[0] for row in source.splitlines() if "line/" in row}
    for part in table.parts:
        for preset, lines in part.lines.items():
            assert {line for line, _ in lines} <= {*known, matrix.ONCE}, f"{part.name}, {preset}"
    for kind in ("golden", "cases", "contract.line"):
        assert {cell.line for cell in table.cells("release", Run(1)) if cell.part == kind} == known
    assert set(table.turns) == known


def test_what_is_daily_is_of_the_release_preset() -> None:
    table = matrix.read()
    assert set(table.cells(matrix.DAILY, Run(1))) <= set(table.cells("release", EVERYTHING))


def test_every_preset_of_the_table_is_a_lane() -> None:
    assert [lane.preset for lane in checks.FULL] == matrix.read().presets()


def test_everything_leaves_nothing_out() -> None:
    lane = checks.for_run(checks.Lane("release"), EVERYTHING)
    assert lane.leaves_out is None
    assert checks.for_run(checks.Lane("release"), Run(1)).leaves_out is not None


def test_without_a_history_it_is_the_first_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "git", lambda *_: "")
    assert matrix.this_run() == Run(1)
