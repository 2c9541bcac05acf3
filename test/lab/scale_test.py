# SPDX-License-Identifier: Apache-2.0
"""hz scale: programs of which is known what passes between cores; what is made of the counts; and the default line."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from hakozuna_lab import LabError, RunError, contender, scale
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import LANE
from hakozuna_lab.scale import Counted, Map
from hakozuna_lab.store import Cell

THREADS = 8
LIBC = Contender("libc", None)

needs_qemu = pytest.mark.skipif(
    not shutil.which(scale.QEMU) or not (scale.PARTS / "cores.so").is_file(),
    reason=f"{scale.QEMU} is not installed, or this is no x86_64",
)


def known(case: str, threads: int = THREADS) -> Counted:
    """All that passes counts, as if the program were the allocator."""
    command = [str(scale.PARTS / "scale_known"), case, str(threads)]
    return scale.simulate(LIBC, command, threads, 1000, 1000, everything=True)


@needs_qemu
@pytest.mark.parametrize("case", ["private", "reading"])
def test_nothing_passes_where_nothing_is_shared(case: str) -> None:
    assert known(case).transfers == 0


@needs_qemu
def test_a_token_passes_once_a_step() -> None:
    """Each step reads what another has written, and then takes it from all who wait for it."""
    counted = known("token")
    assert counted.transfers == pytest.approx(2, abs=0.05)
    assert counted.hottest == pytest.approx(2, abs=0.05)
    assert len(counted.hot) == 1


@needs_qemu
@pytest.mark.parametrize("case", ["shared", "neighbours"])
def test_a_line_that_all_write_passes_at_most_steps(case: str) -> None:
    assert 0.3 < known(case).hottest < 1.1
    assert known(case, threads=1).transfers == 0


@needs_qemu
def test_one_writer_costs_its_readers() -> None:
    counted = known("readers")
    assert 0.03 < counted.hottest < 1.0
    assert counted.speed < known("reading").speed


@needs_qemu
def test_private_cores_add_up_and_a_shared_line_does_not() -> None:
    assert known("private", 16).speed > 1.8 * known("private").speed
    assert known("shared", 16).speed < 1.3 * known("shared").speed


@needs_qemu
def test_a_program_that_ends_early_has_no_counts() -> None:
    with pytest.raises(RunError, match="before every thread"):
        scale.simulate(LIBC, ["/bin/true"], 1, 1000, 1000)


# Transfers for an operation of the line that most pass, with 8 threads: about twice of what is usual. Where each
# crossing writes a word that all threads write it is 0.07 of main_r50.
LIMITS = {"guard_r0": 0.002, "guard_r50": 0.003, "main_r0": 0.008, "main_r50": 0.012}


@needs_qemu
@pytest.mark.parametrize("lane", LIMITS)
def test_no_line_is_hot_under_the_default_line(lane: str) -> None:
    ours = contender.find_line(contender.line_names()[0])
    command = [str(LANE), "--lane", lane, "--threads", str(THREADS)]
    counted = scale.simulate(ours, command, THREADS, 8000, 4000, hottest=1)
    assert counted.hottest < LIMITS[lane], counted.hot
    assert 0 < counted.transfers < 0.5


@needs_qemu
def test_no_line_is_hot_while_counting() -> None:
    """Each call crosses the boundary then. Where threads did so by one empty state, its lines passed once a call."""
    ours = contender.find_line(contender.line_names()[0])
    counting = dataclasses.replace(ours, env={"HZ_STATS": "1"})
    command = [str(LANE), "--lane", "guard_r0", "--threads", str(THREADS)]
    counted = scale.simulate(counting, command, THREADS, 8000, 4000, hottest=1)
    assert counted.instructions > 200, "it did not count"
    assert counted.hottest < 0.1, counted.hot


MAP = Map("4000 8000 \n10000 20000 /lib/libown.so\nmalloc /lib/libown.so")


def test_what_the_program_asks_for_does_not_count() -> None:
    results = {
        "count": 10,
        "per_nanosecond": 6,
        "cores": [{"time": 600, "instructions": 500}] * 2,
        "code": {"5000": 40, "10010": 10},
        "lines": [
            {"at": "30000", "code": {"5000": 3, "10010": 2}},
            {"at": "30040", "code": {"5000": 30}},
            {"at": "30080", "code": {"10010": 8}},
        ],
    }
    counted = scale.count(results, MAP, 0)
    assert counted.transfers == 10 / 20
    assert counted.instructions == 50
    assert counted.speed == pytest.approx(2 * 10 / 100e-9)
    assert counted.hottest == 8 / 20
    assert len(counted.hot) == 1


def test_the_map_knows_files_and_the_program() -> None:
    assert MAP.malloc == "/lib/libown.so"
    assert MAP.is_program(0x4000)
    assert not MAP.is_program(0x8000)
    assert not MAP.is_program(0x10000)


def test_frames_are_those_of_the_allocator() -> None:
    pairs = [
        "std::atomic<int>::load()",
        "atomic:1",
        "hz::TransferCache<hz::X>::put(int)",
        "transfer_cache.hpp:54 (discriminator 2)",
    ]
    assert scale.frames(pairs) == "TransferCache::put transfer_cache.hpp:54"


def test_too_many_threads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="no more than 64"):
        scale.main(scale.Request(threads=(65,)), [])


def test_a_result_that_failed_is_a_row(tmp_path: Path) -> None:
    cell = Cell("lane", "main_r0", 2, "fair")
    good = Counted(0.5, 100.0, 2e6, [scale.HotLine(0.25, "libown.so+40", [(0.2, "put transfer_cache.hpp:54")])])
    rows: list[scale.Row] = [(cell, LIBC, good, "1.00 M"), (cell, LIBC, "failed: exit code 1", "-")]
    scale.show(rows, scale.Request(out=tmp_path / "out.md"), "hz scale")
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "| 0.500 | 0.2500 | 100 | 2.00 M | 1.00 M |" in text
    assert "failed: exit code 1" in text
    assert "0.2000 put transfer_cache.hpp:54" in text
