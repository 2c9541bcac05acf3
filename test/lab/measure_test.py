# SPDX-License-Identifier: Apache-2.0
"""`hz run --measure`: what is told of pairs of runs, what is refused, and what Ctrl-C does."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hakozuna_lab import LabError
from hakozuna_lab.contender import find_line, line_names
from hakozuna_lab.findings import Measured, Pair, Share, refuse_unserved, told
from hakozuna_lab.paths import BUILD, ROOT
from hakozuna_lab.watch import Watch

LINE = line_names()[0]
LIBRARY = find_line(LINE).library or Path()
OTHERS = BUILD / "test/launcher"
C_LIBRARY = Path("/lib/libc.so.6")


def run(
    malloc: Path | None, seconds: float = 1.0, peak_mib: float = 10, program: str = "/bin/x", **more: Any
) -> Measured:
    watch = Watch(0)
    watch.programs_kib = {program: 1} if malloc else {}
    watch.served = {program: malloc} if malloc else {}
    watch.series = [(0.5, 4096), (0.9, 8192)]
    return Measured(seconds, more.pop("code", 0), round(peak_mib * 1024), watch, more.pop("others", 0.0), **more)


def pair(seconds: float = 1.0, peak_mib: float = 10, **more: Any) -> Pair:
    """The run without us takes a second and 10 MiB."""
    return run(C_LIBRARY), run(LIBRARY, seconds, peak_mib, **more)


def verdict(*pairs: Pair) -> str:
    return next(text for text in told("x", "hz3", pairs) if text.startswith("verdict: "))


def notes(*pairs: Pair) -> str:
    return "\n".join(text for text in told("x", "hz3", pairs) if text.startswith("note: "))


def test_the_table() -> None:
    lines = told("program --option", "hz3", [pair(0.8, 20), pair(0.9, 21), pair(0.7, 22)])
    assert lines[0] == "program --option"
    assert lines[1].split() == ["medians", "of", "3", "pairs", "without", "with", "hz3", "ratio", "[95", "%]"]
    assert lines[2].split() == ["time,", "s", "1.000", "0.800", "0.800", "[0.700..0.900]"]
    assert lines[3].split() == ["peak", "memory,", "MiB", "10.0", "21.0", "2.100", "[2.000..2.200]"]
    seen = f"proof: /bin/x calls the malloc of {LIBRARY} (3 runs looked at); without, of {C_LIBRARY};\n"
    assert lines[-1].startswith(seen + "       how much of its memory was ours is not known")


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (Share(1000, 30 << 10, 40 << 10), "served 1000 calls, held 30.0 of 40.0 MiB (75 %)"),
        (Share(1000, 50 << 10, 40 << 10), "served 1000 calls, held 50.0 of 40.0 MiB (100 %)"),
        (Share(1, 100, 600), "served 1 call, held 0.1 of 0.6 MiB (17 %)"),
        (
            Share(7, 1 << 10, 66 << 10),
            "served 7 calls, held 1.0 of 66.0 MiB (2 %):\n       HARDLY SERVED, most of its memory comes from "
            "elsewhere; see hz doctor -- /bin/x",
        ),
    ],
)
def test_the_share_that_was_ours(share: Share, words: str) -> None:
    assert told("x", "hz3", [pair()], share)[-1].endswith(f";\n       {words}")


def test_a_program_with_its_own_heap_is_hardly_served() -> None:
    done = hz("--pairs", 1, "--", OTHERS / "hz-own-heap", 0.3)
    assert done.returncode == 0, done.stderr
    told = re.search(r" served (\d+) calls?, held ([\d.]+) of ([\d.]+) MiB \(\d+ %\):\n +HARDLY SERVED", done.stdout)
    assert told, done.stdout
    assert 7 <= int(told[1]) < 1000
    assert float(told[2]) < 4
    assert 64 < float(told[3]) < 80


def test_a_program_that_is_served() -> None:
    script = "import time; block = [bytes(100) for _ in range(300000)]; time.sleep(0.3)"
    done = hz("--pairs", 1, "--", sys.executable, "-c", script, env={"PYTHONMALLOC": "malloc"})
    told = re.search(r" served (\d+) calls, held ([\d.]+) of ([\d.]+) MiB \((\d+) %\)$", done.stdout, re.MULTILINE)
    assert told, done.stdout
    assert int(told[1]) > 300000
    assert int(told[4]) > 60


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((0.8, 0.9, 0.7, 0.8, 0.8), "hz3 takes 0.80 of the time: faster"),
        ((1.2, 1.3, 1.1, 1.2, 1.2), "hz3 takes 1.20 of the time: slower"),
        ((1.001, 0.999, 1.0, 1.0, 1.0), "the same time"),
        ((0.8, 1.2, 1.0, 1.1, 0.9), "unclear, 5 pairs can tell no difference in time"),
        ((0.8, 0.8, 0.8, 0.8), "too few pairs to judge the time"),
        ((0.8, 0.05, 0.8), "too short to tell the speed (a run takes 0.050 s, most of it the start of the program)"),
    ],
)
def test_time_in_words(times: tuple[float, ...], words: str) -> None:
    assert verdict(*map(pair, times)).startswith(f"verdict: {words}; ")


def test_memory_in_words() -> None:
    assert verdict(*[pair(1, 5)] * 5).endswith("; hz3 takes 0.50 of the peak memory: less")
    assert verdict(*[pair(1, 11)] * 5).endswith("; hz3 takes 1.10 of the peak memory: more")


def test_runs_ended_by_hand() -> None:
    by_hand = (run(C_LIBRARY, code=130, interrupted=1.05), run(LIBRARY, code=0, interrupted=0.95))
    text = "\n".join(told("x", "hz3", [by_hand] * 3))
    assert "time, s" not in text
    assert "time is not compared" in text
    assert "memory at Ctrl-C, MiB 8.0 4.0 0.500 [0.500..0.500]" in " ".join(text.split())


def test_doubts() -> None:
    assert notes(pair(), pair()) == ""
    assert "EXIT CODES DIFFER: without 0, with 139" in notes(pair(code=139), pair(code=139))
    assert "others used up to 40% of the machine during 1 of 4 runs" in notes(pair(), pair(others=0.4))
    failing = run(C_LIBRARY, code=3), run(LIBRARY, code=3)
    assert "the program ended with 3, with us and without" in notes(failing)
    helper = pair()
    helper[1].watch.unproven["/bin/helper"] = "it is static"
    assert "/bin/helper was not served: it is static" in notes(helper)


def test_what_is_refused() -> None:
    refuse_unserved(pair(), LIBRARY)
    refuse_unserved((run(C_LIBRARY), run(None, 0.01)), LIBRARY)  # too short to be looked at
    for bad, message in (
        ((run(C_LIBRARY), run(C_LIBRARY)), "/bin/x was not served by us: it calls the malloc of /lib/libc.so.6"),
        ((run(LIBRARY), run(LIBRARY)), "no run without us"),
        ((run(C_LIBRARY), run(None)), "no proof"),
    ):
        with pytest.raises(LabError, match=message):
            refuse_unserved(bad, LIBRARY)
    unproven = pair()
    unproven[1].watch.served.clear()
    unproven[1].watch.unproven["/bin/x"] = "it may not be looked at"
    with pytest.raises(LabError, match="may not be looked at"):
        refuse_unserved(unproven, LIBRARY)


def hz(*args: object, **more: Any) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": "/callers/own", "HZ_BUILD_DIR": str(BUILD)} | more.pop("env", {})
    command = [str(ROOT / "hz"), "run", "--measure", *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False, **more)


def test_a_program() -> None:
    done = hz("--pairs", 2, "--", "sh", "-c", "sleep 0.4; echo said")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sh -c 'sleep 0.4; echo said'\n")
    assert f"calls the malloc of {LIBRARY} (2 runs looked at)" in done.stdout
    assert "build/measure.log" in done.stderr
    log = (ROOT / "build/measure.log").read_text(encoding="utf-8").splitlines()
    assert log[:4] == ["--- pair 1, without", "said", "--- pair 1, with", "said"]
    assert log[4:8] == ["--- pair 2, with", "said", "--- pair 2, without", "said"]


def test_what_the_program_sees_and_says_is_its_own(tmp_path: Path) -> None:
    script = 'wc -c; echo "${PYTHONPATH-none} ${HZ_BUILD_DIR-none} ${HZ_LAB_LINES-none}" ${LD_PRELOAD##*/}'
    kept = tmp_path / "input"
    kept.write_text("12345\n12345\n", encoding="utf-8")
    expected = ["6", "/callers/own none none", "6", f"/callers/own none none {LIBRARY.name}"]
    piped = hz("--show", "--pairs", 1, "sh", "-c", script, input="12345\n")
    assert piped.stdout.splitlines()[:4] == expected
    with kept.open("rb") as stdin:
        os.lseek(stdin.fileno(), 6, os.SEEK_SET)  # where the caller has read to
        from_file = hz("--show", "--pairs", 1, "sh", "-c", script, stdin=stdin, env={"PYTHONPATH": ""})
    assert from_file.stdout.splitlines()[:4] == [line.replace("/callers/own", "none") for line in expected]


def test_different_exit_codes_are_a_failure() -> None:
    done = hz("--pairs", 1, "sh", "-c", "case $LD_PRELOAD in *hakozuna*) exit 4 ;; esac")
    assert done.returncode == 1
    assert "EXIT CODES DIFFER: without 0, with 4" in done.stdout


@pytest.mark.parametrize(
    ("code", "message", "args"),
    [
        (127, "'no-such-program' was not found", ["no-such-program"]),
        (125, "is a static program", [OTHERS / "hz-static-sleep", 1]),
        (125, "brings its own malloc", [OTHERS / "hz-own-malloc", 1]),
        (125, "--pairs needs a number", ["--pairs", "0", "true"]),
        (125, "need a program", []),
        (125, "do not go together", ["--stats", "true"]),
    ],
)
def test_what_cannot_be_measured(code: int, message: str, args: list[object]) -> None:
    done = hz(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


SERVER = """
import os, signal, sys, time
block = b"x" * (30 << 20)
print("up", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    del block
    time.sleep({after})
"""


class Terminal:
    """`hz run --measure` in a process group of its own, which gets Ctrl-C as from a terminal."""

    def __init__(self, pairs: int, after: float) -> None:
        command = [str(ROOT / "hz"), "run", "--measure", "--show", "--pairs", str(pairs), "--",
                   sys.executable, "-c", SERVER.format(after=after)]  # fmt: skip
        self.process = subprocess.Popen(
            command, env=os.environ | {"HZ_BUILD_DIR": str(BUILD)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def ctrl_c_when_up(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == "up\n"
        time.sleep(0.6)  # some looks of the watch, on a busy machine too
        self.ctrl_c()

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def finish(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def test_ctrl_c_ends_a_server() -> None:
    with Terminal(pairs=1, after=0.1) as terminal:
        for _ in range(2):
            terminal.ctrl_c_when_up()
        code, out, err = terminal.finish()
    assert code == 0, err
    assert "time is not compared" in out
    at_ctrl_c = next(line for line in out.splitlines() if line.startswith("memory at Ctrl-C")).split()
    assert float(at_ctrl_c[4]) > 30
    assert float(at_ctrl_c[5]) > 30
    assert f"calls the malloc of {LIBRARY}" in out


def test_twice_ends_the_measurement() -> None:
    with Terminal(pairs=5, after=60) as terminal:
        terminal.ctrl_c_when_up()
        time.sleep(0.1)
        terminal.ctrl_c()
        code, out, err = terminal.finish()
    assert (code, out) == (125, "")
    assert "once more ends the measurement" in err
    assert "not one pair of runs is complete" in err
