# SPDX-License-Identifier: Apache-2.0
"""What words of the command line mean, and that what is chosen unasked exists in the real catalogue."""

from pathlib import Path

import pytest
from hakozuna_lab import LabError, catalogue
from hakozuna_lab.ab import LANES
from hakozuna_lab.catalogue import Lane
from hakozuna_lab.paths import LANE
from hakozuna_lab.programs.program import Program
from hakozuna_lab.selection import QUICK, QUICK_REST, SWEEP_LANES, USUAL_LANES, Wish, choose, lane_cells


def program(name: str, cases: tuple[str, ...], *needs: str) -> Program:
    return Program(name, cases, needs, version=lambda: "1", work=lambda job: {})


PROGRAMS = {"redis": program("redis", ("set", "get")), "nginx": program("nginx", ("small",), "no-such-command")}


def ids(lane: Path, wish: Wish) -> list[str]:
    return [cell.id for cell in choose(wish, catalogue.read(lane), PROGRAMS)]


def test_lanes(lane: Path) -> None:
    assert ids(
        lane,
        Wish(
            (
                "main_r50",
                "solo",
            )
        ),
    ) == ["main_r50/T2/fair", "main_r50/T16/fair", "solo/T1/fair"]
    assert ids(lane, Wish(("main_r90",), threads=(3,), settle=9)) == ["main_r90/T3/fair/settle9"]
    both = Wish(("main_*",), threads=(3,), modes=("fair", "upstream"), touched=False)
    assert ids(lane, both) == [
        "main_r50/T3/fair/untouched",
        "main_r50/T3/upstream/untouched",
        "main_r90/T3/fair/untouched",
    ]
    assert ids(lane, Wish(("main_r90",), threads=(3,), written=True)) == ["main_r90/T3/fair/written"]
    with pytest.raises(LabError, match="exclude each other"):
        ids(lane, Wish(("main_r90",), written=True, touched=False))
    with pytest.raises(LabError, match="none of these lanes has mode upstream"):
        ids(lane, Wish(("solo",), modes=("upstream",)))


def test_full(lane: Path) -> None:
    made = ids(lane, Wish(full=True, modes=("fair", "upstream")))
    assert len(made) == 2 * 2 + 2 * 2 + 2 + 1
    assert "redis/set" in ids(lane, Wish(("programs",), full=True))


def test_iterations_go_to_lanes_that_are_made_of_them(lane: Path) -> None:
    cells = choose(
        Wish(
            (
                "main_r50",
                "solo",
            ),
            threads=(2,),
            iterations=7,
        ),
        catalogue.read(lane),
        {},
    )
    assert [cell.iterations for cell in cells] == [7, None]


def test_equal_work(lane: Path) -> None:
    cells = choose(Wish(("main_r50", "solo"), threads=(1, 2, 16), equal_work=True), catalogue.read(lane), {})
    assert [(cell.threads, cell.iterations) for cell in cells] == [(1, None), (2, None), (16, 1000), (1, None)]
    with pytest.raises(LabError, match="exclude each other"):
        ids(lane, Wish(equal_work=True, iterations=7))


def test_iterations_of_a_mode_are_what_is_shared() -> None:
    definition: dict[str, int | float | str] = {"iterations": 8_000_000, "iterations_upstream": 80_000}
    for family, expected in (("interleaved", [1_000_000, 50_000]), ("blocks", [1_000_000, 10_000])):
        lane = Lane("x", family, 0, ["fair", "upstream"], False, definition)
        made = lane_cells([lane], Wish(threads=(16,), modes=("fair", "upstream"), equal_work=True))
        assert [cell.iterations for cell in made] == expected


def test_sweeps(lane: Path) -> None:
    threads = ids(lane, Wish(("main_r50",), sweep="threads"))
    assert threads == [f"main_r50/T{count}/fair" for count in (1, 2, 4, 8, 16, 32, 64)]
    remote = ids(lane, Wish(("main_r50",), sweep="remote", threads=(2,)))
    assert remote == [f"main_r50/T2/fair/R{percent}" for percent in (0, 10, 25, 50, 75, 90, 100)]
    assert {name.split("/")[0] for name in ids(lane, Wish(sweep="threads"))} == {"guard_r50", "main_r50"}
    for sweep in ("threads", "remote"):
        with pytest.raises(LabError, match="solo "):
            ids(lane, Wish(("solo",), sweep=sweep))


def test_programs(lane: Path) -> None:
    assert ids(lane, Wish(("redis",))) == ["redis/set", "redis/get"]
    assert ids(lane, Wish(("redis/get",), settle=9000)) == ["redis/get/settle9000"]
    assert ids(
        lane,
        Wish(
            (
                "redis/get",
                "solo",
            )
        ),
    ) == ["solo/T1/fair", "redis/get"]
    assert ids(
        lane,
        Wish(
            (
                "programs",
                "redis/get",
            )
        ),
    ) == ["redis/set", "redis/get"]
    for word, message in (
        ("nginx", "nginx: no-such-command missing"),
        ("redis/x", "no case 'x'"),
        ("mysql", "no lane 'mysql'"),
    ):
        with pytest.raises(LabError, match=message):
            ids(lane, Wish((word,)))


def test_quick_stands_alone(lane: Path) -> None:
    for wish in (Wish(("solo",), quick=True), Wish(quick=True, full=True), Wish(quick=True, threads=(2,))):
        with pytest.raises(LabError, match="--quick has its own selection"):
            ids(lane, wish)


def test_what_is_chosen_unasked_exists() -> None:
    lanes = catalogue.read(LANE)
    cells = choose(Wish(quick=True), lanes, {})
    assert [cell.name for cell in cells] == [lane for lane, _, _ in QUICK]
    assert {cell.rest for cell in cells} == {QUICK_REST}
    for sweep in ("threads", "remote"):
        assert choose(Wish(sweep=sweep), lanes, {})
    for word in (*USUAL_LANES, *SWEEP_LANES, *LANES):
        assert catalogue.select(lanes, [word])
