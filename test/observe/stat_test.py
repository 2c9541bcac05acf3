# SPDX-License-Identifier: Apache-2.0
"""`hz stat`: what it reads from outside is what hz_stats says inside, and looking changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hakozuna_observe import picture, text
from hakozuna_observe.process import Process
from holders import LINES, QUICK, ROOT, Held, Holders, as_other_user, hz, library

pytest_plugins = ("holders",)


def seen(held: Held) -> tuple[picture.Picture, dict[str, int]]:
    """A picture between two equal answers of the process itself: it was at rest."""
    for _ in range(50):
        before = held.stats()[1]
        (one,) = picture.look(held.pid)
        if held.stats()[1] == before:
            return one, before
    raise AssertionError("it is never at rest")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("mode", "variables"),
    [
        ("rest", {"HZ_BACKGROUND": "0"}),
        ("rest", {}),
        ("rest", {"HZ_BACKGROUND": "0", "HZ_STATS": "1", "HZ_STATS_FILE": "/dev/null"}),
        ("rest", {"HZ_BACKGROUND": "0", "HZ_PROFILE_HEAP": "4096", "HZ_PROFILE_HEAP_FILE": "/dev/null"}),
        ("fork", {"HZ_BACKGROUND": "0"}),
    ],
    ids=["caching", "idle", "counting", "profiled", "child"],
)
def test_what_is_seen_is_what_hz_stats_says(
    line: str, mode: str, variables: dict[str, str], hold: Holders, request: pytest.FixtureRequest
) -> None:
    if QUICK and line not in ("hakozuna", "hz7") and request.node.callspec.id.split("-")[0] != "caching":
        pytest.skip("in the full tier")
    one, said = seen(hold(line, mode, **variables))
    assert one.line == line
    differ = {name: (one.stats.get(name), value) for name, value in said.items() if one.stats.get(name, 0) != value}
    assert differ == {}
    assert said["bytes_live"] > 10 << 20
    # The parts are the whole.
    in_spans = sum(each.out_bytes for each in one.classes)
    assert in_spans + one.huge_bytes + one.sampled_bytes == one.stats["bytes_held"]
    assert one.huge_blocks == 1
    assert (one.sampled_bytes != 0) == ("HZ_PROFILE_HEAP" in variables and line != "hz7")
    cached = sum(each.cached_bytes for each in one.threads)
    if variables.get("HZ_BACKGROUND") == "0" and mode == "rest" and line != "hz7":
        assert cached > 0
        assert all(each.number != 0 and each.name == "hz-holder" for each in one.threads)
        assert sum(sum(each.fill) for each in one.classes) == sum(each.spans for each in one.classes)
    for page in (text.render(one), text.render(one, everything=True)):
        assert all(len(row) <= 80 for row in page.splitlines()), page


@pytest.mark.parametrize("line", LINES)
def test_what_a_trim_would_return(line: str, hold: Holders) -> None:
    """Resident memory falls by what was shown, and by what threads cached; then nothing more is shown."""
    held = hold(line, "survivors")
    (one,) = picture.look(held.pid)
    assert f"trim{text.size(one.trimmable):>16}" in text.render(one)
    held.stats(trimmed=True)
    (after,) = picture.look(held.pid)
    gone, cached = one.resident - after.resident, one.stats["bytes_cached"]
    assert one.trimmable * 0.95 - (256 << 10) < gone < one.trimmable + cached + (1 << 20)
    assert after.trimmable < 1 << 20
    if line not in ("hz3", "hz3-fast", "hz7", "secure"):
        assert one.trimmable > 4 << 20, "pages between survivors"


def test_what_is_taken_back_meanwhile_counts_once(hold: Holders) -> None:
    """The purger takes what idle threads cache just then."""
    held = hold("hakozuna")
    seen_live: set[int] = set()
    until = time.monotonic() + 0.6
    while time.monotonic() < until:
        seen_live.update(one.stats["bytes_live"] for one in picture.look(held.pid))
    assert seen_live == {held.stats()[1]["bytes_live"]}


def test_looking_neither_stops_nor_changes(hold: Holders) -> None:
    held = hold("hakozuna", HZ_BACKGROUND="0")

    def facts() -> str:
        status = Path(f"/proc/{held.pid}/status").read_text()
        fields = Path(f"/proc/{held.pid}/stat").read_text().rpartition(")")[2].split()
        names = ("State", "TracerPid", "VmRSS", "VmSize", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
        kept = [row for row in status.splitlines() if row.partition(":")[0] in names]
        return "\n".join([*kept, "faults " + fields[7]])

    before, at_rest = "", facts()
    while at_rest != before:  # the kernel may still count what it did before
        time.sleep(0.2)
        before, at_rest = at_rest, facts()
    for _ in range(5):
        picture.look(held.pid)
    assert facts() == before


def test_a_process_whose_first_thread_has_ended(hold: Holders) -> None:
    """Of that thread the system tells neither memory nor files."""
    held = hold("hakozuna", "left")
    deadline = time.monotonic() + 20
    while "\nState:\tZ" not in Path(f"/proc/{held.pid}/status").read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (one,) = picture.look(held.pid)
    assert one.line == "hakozuna"
    assert one.resident > 0
    assert held.pid in Process(held.pid).thread_numbers()
    doctor = hz("doctor", str(held.pid))
    assert doctor.returncode == 0, doctor.stdout
    assert "yes, line hakozuna" in doctor.stdout


def test_a_busy_process_can_be_looked_into(hold: Holders) -> None:
    held = hold("hakozuna", "busy")
    for _ in range(30 if QUICK else 200):
        (one,) = picture.look(held.pid)
        assert one.stats["bytes_held"] < 1 << 30
        text.render(one)


@pytest.mark.parametrize("line", ["hakozuna", "hz4"])
def test_no_figure_is_negative_while_threads_go_on(line: str, hold: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that frees is read after the one that allocated: its count has blocks that the other's lacks."""
    held = hold(line, "rest", HZ_BACKGROUND="0", HZ_STATS="1", HZ_STATS_FILE="/dev/null")
    read = picture._events

    def later(reader: picture._Reader, sums: dict[str, int]) -> dict[str, int]:
        events = read(reader, sums)
        ahead = ("bytes_freed", "bytes_collected", "remote_collected")
        return events | {name: events[name] + (1 << 40) for name in ahead if name in events}

    monkeypatch.setattr(picture, "_events", later)
    (one,) = picture.look(held.pid)
    assert "bytes_live" in one.stats
    assert {name: value for name, value in one.stats.items() if value < 0} == {}


def test_forms(hold: Holders) -> None:
    held = hold("hakozuna")
    answer = hz("stat", str(held.pid))
    assert answer.returncode == 0, answer.stderr
    assert "line hakozuna" in answer.stdout
    known = json.loads(hz("stat", "--json", str(held.pid)).stdout)
    assert known["stats"]["bytes_live"] > 10 << 20
    assert known["pid"] == held.pid


def test_watch_ends_with_the_process(hold: Holders) -> None:
    held = hold("hakozuna")
    threading.Timer(2.0, held.end).start()
    answer = hz("stat", "--json", "--watch", "0.4", str(held.pid))
    assert answer.returncode == 0, answer.stderr
    assert 2 <= len(answer.stdout.splitlines()) <= 8
    assert "has ended" in answer.stderr or "there is no process" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["999999999"], 1, "there is no process 999999999"),
        (["0"], 2, "is no process id"),
        (["x"], 2, "is no process id"),
        (["-1"], 2, "hz: error: stat: "),
        (["9" * 5000], 2, "is no process id"),
        (["/" + "x" * 5000], 2, "File name too long"),
        (["/no/such/file"], 2, "No such file"),
        (["/tmp"], 2, "not a regular file"),
        (["--js", "1"], 2, "--js"),
        (["--all", "--json", "1"], 2, "--all"),
        (["--dir", "/tmp", "/etc/passwd"], 2, "--dir"),
        ([], 2, "PID"),
        (["--watch", "0", "1"], 2, "seconds"),
        (["--watch", "x", "1"], 2, "'x' is no time"),
        (["--json", "--openmetrics", "1"], 2, "not allowed"),
    ],
)
def test_bad_input_gets_one_line(arguments: list[str], code: int, sentence: str) -> None:
    answer = hz("stat", *arguments)
    assert answer.returncode == code
    assert sentence in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stdout == ""


def test_output_that_cannot_be_written(hold: Holders, tmp_path: Path) -> None:
    held = hold("hakozuna")
    for shell, said in (('exec "$@" >/dev/full', "No space left"), ('exec "$@" >&-', "standard output is closed")):
        command = ["sh", "-c", shell, "sh", str(ROOT / "hz"), "stat", str(held.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 125
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_top_needs_a_terminal() -> None:
    answer = hz("top")
    assert answer.returncode == 125
    assert "needs a terminal" in answer.stderr


def test_a_process_without_us_is_told_why() -> None:
    answer = hz("stat", str(os.getpid()))
    assert answer.returncode == 4
    assert "is not served by Hakozuna" in answer.stderr
    assert "LD_PRELOAD did not name us" in answer.stderr


def test_another_version_is_refused(hold: Holders, tmp_path: Path) -> None:
    other = tmp_path / "libhakozuna-hakozuna.so"
    content = bytearray(library("hakozuna").read_bytes())
    at = content.index(b"hzlayout\x01\0\0\0")
    content[at + 8] = 99
    other.write_bytes(content)
    held = hold("hakozuna", LD_PRELOAD=str(other))
    answer = hz("stat", str(held.pid))
    assert answer.returncode == 1
    assert "version 99, this hz reads 1" in answer.stderr


@pytest.mark.parametrize(("at", "value"), [(12, 0xFFFFFFFF), (12, 8), (52, 0xFFFFFFFF), (48, 0)])
def test_a_damaged_description_is_refused(at: int, value: int, hold: Holders, tmp_path: Path) -> None:
    content = bytearray(library("hakozuna").read_bytes())
    begin = content.index(b"hzlayout\x01\0\0\0")
    content[begin + at : begin + at + 4] = value.to_bytes(4, "little")
    other = tmp_path / "libhakozuna-hakozuna.so"
    other.write_bytes(content)
    answer = hz("stat", str(hold("hakozuna", LD_PRELOAD=str(other)).pid))
    assert answer.returncode == 1
    assert "is damaged" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_stripped_library_and_one_that_was_deleted(hold: Holders, tmp_path: Path) -> None:
    other = tmp_path / "libhakozuna-hakozuna.so"
    shutil.copy(library("hakozuna"), other)
    subprocess.run(["strip", "-s", other], check=True)
    held = hold("hakozuna", LD_PRELOAD=str(other))
    assert picture.look(held.pid)[0].line == "hakozuna"
    other.unlink()
    assert picture.look(held.pid)[0].line == "hakozuna"


@pytest.mark.parametrize("command", ["stat", "prof"])
def test_another_users_process_may_not_be_looked_into(command: str, hold: Holders) -> None:
    answer = as_other_user(command, str(hold("hakozuna").pid))
    assert answer.returncode == 3, answer.stderr
    assert "may not be looked into" in answer.stderr
