# SPDX-License-Identifier: Apache-2.0
"""The share of the machine that others used: known answers, and a process that is not ours being seen."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hakozuna_lab import machine
from hakozuna_lab.machine import TICK, CpuTimes, busy_seconds, cpu_times, others_share


def test_busy_is_all_but_idle_and_waiting() -> None:
    assert busy_seconds("cpu  100 10 20 5000 700 1 2 3 99 9\ncpu0 1 1 1") == pytest.approx(136 * TICK)


def test_own_time_is_not_held_against_others() -> None:
    before, after = CpuTimes(0, 100, 10), CpuTimes(10, 115, 22)
    # 15 s were busy, 12 of them ours; one tick a CPU is the error of the count.
    assert others_share(before, after, cpus=2) == pytest.approx((3 - 2 * TICK) / 20)


def test_rounding_does_not_make_shares_below_zero() -> None:
    assert others_share(CpuTimes(0, 0, 0), CpuTimes(1, 0.99, 1), cpus=2) == 0


def test_children_count_as_ours_once_they_have_ended() -> None:
    before = cpu_times()
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    assert cpu_times().own - before.own > 0.05


def test_a_process_that_is_not_ours_is_seen() -> None:
    """It is our child, but one that runs on: its time is in /proc/stat and not yet in ours."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            before = cpu_times()
            while cpu_times().busy - before.busy < 0.3:
                time.sleep(0.05)
            assert others_share(before, cpu_times(), os.cpu_count() or 1) > 0
        finally:
            other.kill()


def test_conditions_are_told() -> None:
    commit, _ = machine.commit()
    assert len(commit) == 40 or commit == "none"
    assert machine.cpu_name()
    assert machine.load().count(" ") == 4
    assert machine.read_text("/no/such/file") == "unknown"


def test_who_measures_on_a_busy_machine_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(Path, "write_text", lambda *arguments, **options: None)
    for share, said in ((0.2, True), (0.01, False)):
        monkeypatch.setattr(machine, "others_share", lambda before, after, share=share: share)
        machine.prepare()
        assert ("hz: other processes use 20% of the machine" in capsys.readouterr().err) == said


def test_workloads_come_first_when_memory_runs_out() -> None:
    script = "from hakozuna_lab.machine import prepare; prepare(); print(open('/proc/self/oom_score_adj').read())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1000"
