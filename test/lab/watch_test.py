# SPDX-License-Identifier: Apache-2.0
"""Memory of a tree of processes over time, and which malloc each of them got."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hakozuna_lab import LabError, RunError
from hakozuna_lab.contender import find_line, line_names
from hakozuna_lab.process import run_watched
from hakozuna_lab.watch import Watch, field_kib, read, rss_kib, signal_all, tree

LIBRARY = find_line(line_names()[0]).library
SERVED = os.environ | {"LD_PRELOAD": str(LIBRARY)}
MIB = 1024
# Holds 40 MiB until a line comes, then nothing until another comes; its child holds 20 MiB as long.
HOLD = """
import os, signal, sys
child = os.fork()
block = b"x" * ((20 if child == 0 else 40) << 20)
if child == 0:
    signal.pause()
sys.stdin.readline()
os.kill(child, 9)
os.wait()
del block
sys.stdin.readline()
"""


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_memory_of_a_tree_over_time() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE) as process,
        Watch(process.pid, interval=0.02) as watch,
    ):
        assert process.stdin
        until(lambda: any(kib > 60 * MIB for _, kib in watch.series))
        process.stdin.write(b"\n")
        process.stdin.flush()
        until(lambda: watch.series[-1][1] < 40 * MIB)
        process.stdin.write(b"\n")
    times = [at for at, _ in watch.series]
    assert times == sorted(times)
    assert max(kib for _, kib in watch.series) <= watch.peak_kib < 120 * MIB
    assert 0 < watch.cpu_seconds < times[-1]


def test_no_sample_waits_for_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = threading.Event()
    monkeypatch.setattr("hakozuna_lab.watch.malloc_file", lambda pid: Path("some") if grown.wait(20) else None)
    with (
        subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE) as process,
        Watch(process.pid, interval=0.02) as watch,
    ):
        try:
            until(lambda: any(kib > 60 * MIB for _, kib in watch.series))
            assert not watch.served
        finally:
            grown.set()
        until(lambda: bool(watch.served))
        process.communicate(b"\n\n")
    assert set(watch.served.values()) == {Path("some")}


def test_the_exact_peak_of_a_moment_between_two_looks() -> None:
    code = "import os; block = b'x' * (60 << 20); os._exit(7)"
    done = run_watched([sys.executable, "-c", code], os.environ)
    assert done.code == 7
    assert done.peak_kib > 60 * MIB


def test_our_own_size_is_not_the_programs() -> None:
    ballast = b"x" * (80 << 20)
    assert run_watched(["sleep", "0.1"], os.environ).peak_kib < 20 * MIB < len(ballast) / 1024


def test_the_tool_that_starts_the_program_does_not_count() -> None:
    seen: set[str] = set()
    while "sleep" not in seen:
        watch = run_watched(["sleep", "0.2"], os.environ).watch
        seen |= {Path(program).name for program in watch.programs_kib}
    assert seen == {"sleep"}


def test_a_signal_is_a_code() -> None:
    assert run_watched(["sh", "-c", "kill -SEGV $$"], os.environ).code == 128 + 11


def test_what_does_not_end() -> None:
    began = time.monotonic()
    with pytest.raises(RunError, match="no end after 0 s"):
        run_watched(["sh", "-c", "sleep 30 & wait"], os.environ, timeout=0.3)
    assert time.monotonic() - began < 10


def test_an_end_is_seen_at_once() -> None:
    runs = (run_watched(["sleep", "0.12"], os.environ, timeout=60) for _ in range(40))
    assert any(run.seconds < 0.12 + 0.03 for run in runs)  # the others were held up by the machine


def test_rss_now() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as process:
        try:
            while [read(Path(f"/proc/{pid}/comm")) for pid in tree(process.pid)] != ["sh\n", "sleep\n"]:
                time.sleep(0.01)
            time.sleep(0.2)  # until its loader is done
            alone = [field_kib(read(Path(f"/proc/{pid}/smaps_rollup")), "Rss") for pid in tree(process.pid)]
            assert min(alone) > 0
            assert rss_kib(process.pid) == pytest.approx(sum(alone), rel=0.05)
        finally:
            signal_all(tree(process.pid), signal.SIGKILL)


def test_fields() -> None:
    assert field_kib("Name:\tx\nVmHWM:\t  12 kB\nVmRSS:\t7 kB\n", "VmRSS") == 7
    assert field_kib("Name:\tx\n", "VmRSS") == 0


def test_one_malloc() -> None:
    assert run_watched(["sh", "-c", "sleep 0.2; :"], SERVED).watch.one_file() == LIBRARY


def test_not_one_malloc() -> None:
    done = run_watched(["sh", "-c", "env -u LD_PRELOAD sleep 0.2; :"], SERVED)
    with pytest.raises(LabError, match=r"not one malloc: .*libc\.so"):
        done.watch.one_file()


def test_the_same_program_twice_with_different_mallocs() -> None:
    done = run_watched(["sh", "-c", "sleep 0.3; env -u LD_PRELOAD sleep 0.3; :"], SERVED)
    with pytest.raises(LabError, match="sleep was served by"):
        done.watch.one_file()


def test_too_short_to_be_asked() -> None:
    watch = Watch(2**22 + 1)  # more than there can be
    with watch:
        pass
    with pytest.raises(LabError, match="ended before"):
        watch.one_file()


def test_a_watch_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hakozuna_lab.watch.tree", lambda pid: 1 / 0)
    with pytest.raises(ZeroDivisionError), Watch(os.getpid()):
        pass
