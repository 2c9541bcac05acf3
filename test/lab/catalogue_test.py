# SPDX-License-Identifier: Apache-2.0
"""The catalogue: selection by name, family and glob; a mislabelled lane and a wrong moment are errors."""

from pathlib import Path
from typing import Any

import pytest
from hakozuna_lab import LabError, catalogue
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import LANE
from hakozuna_lab.runner import Runner
from hakozuna_lab.store import Cell

CELL = Cell("lane", "guard_r50", 2, "fair", remote=25, iterations=9)


def names(lane: Path, *patterns: str) -> list[str]:
    return [found.lane for found in catalogue.select(catalogue.read(lane), patterns)]


def test_selection(lane: Path) -> None:
    assert names(lane, "main_r50") == ["main_r50"]
    assert names(lane, "solo", "main_*") == ["main_r50", "main_r90", "solo"]
    assert names(lane, "ring", "main_r50") == ["guard_r50", "main_r50", "main_r90"]
    assert names(lane, "guard") == ["guard_r50"]
    with pytest.raises(LabError, match="no lane 'main_r7'; families: ring solo; lanes: guard_r50"):
        names(lane, "main_r7")


def good_record() -> dict[str, Any]:
    definition = {"min_size": 16, "max_size": 2048, "iterations": 9, "remote_percent": 25}
    return {
        "lane": "guard_r50",
        "family": "ring",
        "mode": "fair",
        "threads": 2,
        "definition": definition,
        "touched": True,
        "moments": ["empty", "start", "end", "idle", "after"],
        "rss_peak_kib": 30,
        "rss_idle_kib": 20,
        "rss_after_kib": 10,
    }


def test_a_record_of_the_lane(lane: Path) -> None:
    catalogue.check(catalogue.read(lane), CELL, good_record())


@pytest.mark.parametrize(
    "change",
    [
        {"lane": "guard_r0"},
        {"mode": "upstream"},
        {"threads": 16},
        {"definition": good_record()["definition"] | {"max_size": 1024}},
        {"definition": good_record()["definition"] | {"remote_percent": 50}},
        {"definition": {}},
    ],
)
def test_a_mislabelled_lane_is_an_error(lane: Path, change: dict[str, Any]) -> None:
    with pytest.raises(LabError, match=r"guard_r50/T2/fair/R25: mislabelled lane: "):
        catalogue.check(catalogue.read(lane), CELL, good_record() | change)


def test_memory_must_have_settled(lane: Path) -> None:
    cell = Cell("lane", "guard_r50", 2, "fair", remote=25, iterations=9, settle=1000)
    catalogue.check(catalogue.read(lane), cell, good_record() | {"settle_ms": 1000})
    with pytest.raises(LabError, match="settle_ms is None, expected 1000"):
        catalogue.check(catalogue.read(lane), cell, good_record())


def test_memory_must_have_been_read_after_the_rest(lane: Path) -> None:
    cell = Cell("lane", "guard_r50", 2, "fair", remote=25, iterations=9, rest=1000)
    catalogue.check(catalogue.read(lane), cell, good_record() | {"rest_ms": 1000})
    with pytest.raises(LabError, match="rest_ms is None, expected 1000"):
        catalogue.check(catalogue.read(lane), cell, good_record())


def test_blocks_left_untouched_must_have_been(lane: Path) -> None:
    cell = Cell("lane", "guard_r50", 2, "fair", remote=25, iterations=9, touched=False)
    catalogue.check(catalogue.read(lane), cell, good_record() | {"touched": False})
    with pytest.raises(LabError, match="touched is True, expected False"):
        catalogue.check(catalogue.read(lane), cell, good_record())


def test_blocks_written_in_full_must_have_been(lane: Path) -> None:
    cell = Cell("lane", "guard_r50", 2, "fair", remote=25, iterations=9, written=True)
    catalogue.check(catalogue.read(lane), cell, good_record() | {"written": True})
    with pytest.raises(LabError, match="written is None, expected True"):
        catalogue.check(catalogue.read(lane), cell, good_record())


def test_memory_read_at_the_wrong_moment_is_an_error(lane: Path) -> None:
    late = good_record() | {"moments": ["empty", "start", "end", "after", "idle"]}
    with pytest.raises(LabError, match="moments is "):
        catalogue.check(catalogue.read(lane), CELL, late)
    with pytest.raises(LabError, match="wrong moment: the peak is below"):
        catalogue.check(catalogue.read(lane), CELL, good_record() | {"rss_after_kib": 31})


@pytest.mark.parametrize("mode", ["fair", "upstream"])
def test_the_real_program_says_what_is_expected_of_it(mode: str) -> None:
    """The first lane of each family, shortened."""
    lanes = catalogue.read(LANE)
    may = [lane for lane in lanes.values() if mode in lane.modes and "iterations" in lane.definition]
    families = {lane.family: lane for lane in reversed(may)}
    for lane in families.values():
        cell = Cell("lane", lane.lane, lane.threads or 2, mode, iterations=100)
        Runner(lanes, {}, LANE).run(cell, Contender("glibc", None))
    assert len(families) > 1


def test_a_program_that_lists_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="lane --list"):
        catalogue.read(tmp_path / "lane")
