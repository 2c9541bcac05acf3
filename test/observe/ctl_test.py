# SPDX-License-Identifier: Apache-2.0
"""`hz ctl`, and what a process writes into a folder: who may, what is refused, and both in a process's life."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hakozuna_observe import control, stats_file
from hakozuna_observe.process import Process, UnseenError
from holders import BUILD, LINES, Holders, as_other_user, as_user, hz, library

pytest_plugins = ("holders",)

PERMITTED = {"HZ_CONTROL": "1"}


def threads(pid: int) -> list[str]:
    """Names of all threads."""
    return [(task / "comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()]


def refused(pid: int, line: str) -> UnseenError:
    """Why."""
    with pytest.raises(UnseenError) as found:
        control.ask(pid, line)
    return found.value


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it comes to hold in that time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def connected(pid: int) -> socket.socket:
    """As any program may."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.settimeout(10)
    (name,) = control._names(Process(pid)) or [f"\0hakozuna.{pid}.none"]
    end.connect(name)
    return end


def answer_to(end: socket.socket) -> bytes:
    """All of it."""
    text = b""
    with contextlib.suppress(ConnectionResetError):  # it did not want to read all that it was sent
        while part := end.recv(65536):
            text += part
    end.close()
    return text


# --- control


@pytest.mark.parametrize("line", LINES)
def test_asks_and_sets(line: str, hold: Holders) -> None:
    held = hold(line, **PERMITTED)
    assert threads(held.pid).count("hz-control") == 1
    assert control.ask(held.pid, "set retain 300") == "300"
    assert control.ask(held.pid, "get retain") == "300"
    rows = {one.key: one for one in control.keys(held.pid)}
    assert rows["retain"].value == "300"
    assert rows["control"].value == "1"
    assert rows["thread_cache"].when == ("none" if line == "hz7" else "live")
    assert refused(held.pid, "set stats 1").code == control.REFUSED
    # What comes back is what the process says itself.
    control.ask(held.pid, "set trim")
    said = held.stats()[1]
    assert said["bytes_dirty"] == 0
    assert said["bytes_live"] > 10 << 20


def test_forms(hold: Holders) -> None:
    held = hold("hakozuna", **PERMITTED)
    pid = str(held.pid)
    done = hz("ctl", pid, "set", "limit_hard", "1G")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1073741824\n", "")
    assert json.loads(hz("ctl", pid, "list", "--json").stdout)["limit_hard"]["value"] == "1073741824"
    table = hz("ctl", pid, "list").stdout.splitlines()
    assert len(table) > 25
    assert any(row.split()[:3] == ["limit_hard", "live", "1073741824"] for row in table)
    long = hz("ctl", pid, "set", "retain", "9" * 5000)
    assert long.returncode == control.REFUSED
    assert "a line has at most 2047 bytes" in long.stderr
    wrong = hz("ctl", pid, "set", "background", "0")
    assert wrong.returncode == control.REFUSED
    assert wrong.stdout == ""
    assert "background is read at the start alone: set HZ_BACKGROUND in the environment" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["999999999", "get", "retain"], 1, "there is no process 999999999"),
        (["x", "get", "retain"], 2, "is no process id"),
        (["1", "get"], 2, "get KEY, set KEY [VALUE], or list"),
        (["1", "banana"], 2, "invalid choice"),
    ],
)
def test_bad_input_gets_one_line(arguments: list[str], code: int, sentence: str) -> None:
    answer = hz("ctl", *arguments)
    assert answer.returncode == code
    assert sentence in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_nothing_is_there_that_was_not_asked_for(hold: Holders) -> None:
    held = hold("hakozuna")
    assert "hz-control" not in threads(held.pid)
    why = refused(held.pid, "get retain")
    assert why.code == control.FORBIDDEN
    assert "HZ_CONTROL=1" in str(why)
    with pytest.raises(ConnectionRefusedError):
        connected(held.pid)
    assert refused(os.getpid(), "get retain").code == 4


def test_another_user_is_refused_and_the_next_one_served(hold: Holders) -> None:
    held = hold("hakozuna", **PERMITTED)
    answer = as_other_user("ctl", str(held.pid), "set", "retain", "1000")
    assert answer.returncode == control.FORBIDDEN, answer.stderr
    assert "control is for root, and for the user that the process has" in answer.stderr
    assert control.ask(held.pid, "get retain") == "150"


def test_whoever_sends_nonsense_is_told_so(hold: Holders) -> None:
    held = hold("hakozuna", **PERMITTED)
    silent, slow = connected(held.pid), connected(held.pid)
    slow.sendall(b"get ret")
    began = time.monotonic()
    assert b"within a second" in answer_to(silent)
    assert b"within a second" in answer_to(slow)
    assert time.monotonic() - began < 4
    for sent, told in (
        (b"\n", b" is neither get nor set\n22\n"),
        (b"\xff\x00\x1b[31m\n", b"???[31m is neither get nor set\n22\n"),
        (b"get retain\nget stats\n", b"150\n0\n"),
        (b"get " + b"x" * 3000 + b"\n", b"a line has at most 2047 bytes\n90\n"),
        (b"get", b"a line has to come within a second\n110\n"),
    ):
        end = connected(held.pid)
        end.sendall(sent)
        end.shutdown(socket.SHUT_WR)
        assert answer_to(end) == told
    end = connected(held.pid)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        end.sendall(b"x" * (1 << 20))
    end.close()
    many = [connected(held.pid) for _ in range(16)]
    for end in reversed(many):
        end.sendall(b"get retain\n")
    assert {answer_to(end) for end in many} == {b"150\n0\n"}
    assert threads(held.pid).count("hz-control") == 1


@pytest.mark.parametrize("line", [one for one in LINES if one in ("hakozuna", "hz7")])
def test_a_child_has_its_own(line: str, hold: Holders) -> None:
    held = hold(line, "fork", **PERMITTED)
    parent = held.process.pid
    assert held.pid != parent
    assert until(lambda: "hz-control" in threads(held.pid))
    assert until(lambda: control.ask(held.pid, "set retain 200") == "200")
    assert control.ask(parent, "get retain") != "200"
    # No file of the program leads to either socket.
    for pid in (parent, held.pid):
        files = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
        assert not [file for file in files if file.startswith("socket:")]


def test_a_program_that_shuts_itself_in_is_still_served(hold: Holders) -> None:
    held = hold("hakozuna", "shut", **PERMITTED)
    assert control.ask(held.pid, "set retain 200") == "200"
    time.sleep(1.2)  # past the thread's next look around
    assert control.ask(held.pid, "get retain") == "200"


def test_the_program_that_takes_its_place_is_another(hold: Holders) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
    holder = BUILD / "test/observe/hz-holder"
    with subprocess.Popen(
        ["sh", "-c", f"read go; exec {holder} rest"],
        env=environment | {"LD_PRELOAD": str(library("hakozuna"))} | PERMITTED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert until(lambda: "hz-control" in threads(process.pid))
        assert control.ask(process.pid, "set retain 200") == "200"
        process.stdin.write("go\n")
        process.stdin.flush()
        assert until(lambda: Process(process.pid).name() == "hz-holder")
        assert until(lambda: "hz-control" in threads(process.pid))
        assert control.ask(process.pid, "get retain") == "150"
        process.stdin.close()
        assert process.wait(20) == 0
    assert "there is no process" in str(refused(process.pid, "get retain"))


@pytest.mark.parametrize("line", [one for one in LINES if one in ("hakozuna", "hz7")])
def test_it_does_not_keep_a_process_alive(line: str, hold: Holders) -> None:
    held = hold(line, "left", **PERMITTED)
    assert until(lambda: "\nState:\tZ" in Path(f"/proc/{held.pid}/status").read_text(encoding="utf-8"))
    assert control.ask(held.pid, "get retain") != ""
    held.end()  # within a minute, and with 0


def test_what_is_found_wrong_is_told_and_ends_the_program() -> None:
    """By the thread, which has no file of the program's, on the program's stderr."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
    with subprocess.Popen(
        [BUILD / "test/observe/hz-holder", "twice"],
        env=environment | {"LD_PRELOAD": str(library("hakozuna"))} | PERMITTED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()  # it is at rest
        refused(process.pid, "set trim")
        _, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGABRT
    assert said.startswith("hz: fatal: E03 double-free ")


def test_no_other_process_answers(hold: Holders) -> None:
    held = hold("hakozuna")
    impostor = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    impostor.bind(f"\0hakozuna.{held.pid}.1")
    impostor.listen()
    assert "does not permit control" in str(refused(held.pid, "get retain"))
    impostor.close()


def test_a_name_that_was_taken_beforehand_keeps_no_process_from_its_own() -> None:
    """Also the names that other sockets have are tried, of which some are busy and some are another process's."""
    holder = BUILD / "test/observe/hz-holder"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")} | PERMITTED
    with subprocess.Popen(
        ["sh", "-c", f"read go; LD_PRELOAD={library('hakozuna')} exec {holder} rest"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        taken = []
        for name in (f"hakozuna.{process.pid}", *(f"hakozuna.{process.pid}.{i}" for i in range(20))):
            taken.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            taken[-1].bind("\0" + name)
            taken[-1].listen(0 if name.endswith("7") else 8)
        process.stdin.write("go\n\n")
        process.stdin.flush()
        process.stdout.readline()
        assert control.ask(process.pid, "set retain 200") == "200"
        _, said = process.communicate(timeout=30)
        for one in taken:
            one.close()
    assert said == ""


def test_two_of_one_number_are_told_apart() -> None:
    """Two containers of a pod: namespaces of numbers of their own, and one network."""
    namespaces = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*namespaces, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("needs namespaces of its own")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")} | PERMITTED
    script = f"LD_PRELOAD={library('hakozuna')} exec {BUILD / 'test/observe/hz-holder'} rest"
    with contextlib.ExitStack() as stack:
        pids = []
        for _ in range(2):
            process = stack.enter_context(
                subprocess.Popen(
                    [*namespaces, "sh", "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            assert process.stdin is not None
            assert process.stdout is not None
            stack.callback(process.stdin.close)
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert process.stdout.readline().split()[0] == b"1"
            pids.append(int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()))
        for pid, value in zip(pids, ("200", "300"), strict=True):
            assert control.ask(pid, f"set retain {value}") == value
        assert [control.ask(pid, "get retain") for pid in pids] == ["200", "300"]


@pytest.mark.parametrize(
    ("change", "is_served"),
    [
        ("seteuid(65533)", False),
        ("setreuid(65533, 0)", False),
        ("setresuid(65533, 65533, 0)", False),
        ("setresuid(0, 0, 65533)", False),
        ("setresuid(65533, 65533, 65533)", True),
    ],
)
def test_a_server_that_works_as_a_user_is_still_roots(change: str, is_served: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
    with subprocess.Popen(
        ["/usr/bin/python3", "-c", f"import os; os.{change}; print(flush=True); input()"],
        env=environment | PERMITTED | {"LD_PRELOAD": str(library("hakozuna"))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        answer = as_user(65533, "ctl", str(process.pid), "set", "retain", "200")
        by_root = control.ask(process.pid, "get retain")
        process.communicate("\n", timeout=30)
    assert answer.returncode == (0 if is_served else control.FORBIDDEN), answer.stderr
    assert by_root == ("200" if is_served else "150")


@pytest.mark.parametrize("command", ["ctl", "stat"])
def test_a_process_that_nobody_waited_for_has_ended(command: str) -> None:
    with subprocess.Popen(["true"]) as process:
        assert until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        answer = hz(command, str(process.pid), *(["get", "retain"] if command == "ctl" else []))
        assert answer.returncode == 1
        assert answer.stderr == f"hz: error: process {process.pid} has ended\n"


# --- the file


def written(folder: Path, pid: int) -> bool:
    """Whether there is a file."""
    return stats_file.path_in(folder, pid).exists()


@pytest.mark.parametrize("line", LINES)
def test_the_file_says_what_the_process_says(line: str, hold: Holders, tmp_path: Path) -> None:
    held = hold(line, HZ_STATS_DIR=str(tmp_path), HZ_BACKGROUND="0")

    def same() -> bool:
        if not written(tmp_path, held.pid):
            return False
        one = stats_file.read(stats_file.path_in(tmp_path, held.pid))
        assert (one.pid, one.line, one.program) == (held.pid, line, "hz-holder")
        return one.stats == held.stats()[1]

    assert until(same)
    assert [file.name for file in tmp_path.iterdir()] == [f"hakozuna.{held.pid}.stats"]
    assert threads(held.pid).count("hz-control") == 1
    assert refused(held.pid, "get retain").code == control.FORBIDDEN  # nobody permitted that
    if line == "hakozuna":
        # Nothing is new, so nothing is written.
        before = stats_file.path_in(tmp_path, held.pid).stat().st_mtime_ns
        time.sleep(1.3)
        assert stats_file.path_in(tmp_path, held.pid).stat().st_mtime_ns == before
        child = hold(line, "fork", HZ_STATS_DIR=str(tmp_path))
        assert until(lambda: written(tmp_path, child.pid) and written(tmp_path, child.process.pid))
        child.end()
        assert until(lambda: not written(tmp_path, child.process.pid))
    held.end()
    assert not written(tmp_path, held.pid), "it goes with the process"


def test_the_file_is_shown_where_looking_is_refused(hold: Holders, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    held = hold("hakozuna", HZ_STATS_DIR=str(tmp_path))
    pid, path = str(held.pid), stats_file.path_in(tmp_path, held.pid)
    assert until(lambda: path.exists() and stats_file.read(path).stats["bytes_live"] > 10 << 20)
    assert "size classes" in hz("stat", pid, "--dir", str(tmp_path)).stdout, "it may be looked into"
    shown = hz("stat", str(path))
    assert shown.returncode == 0, shown.stderr
    assert "written by the process" in shown.stdout
    assert " s ago" in shown.stdout
    known = json.loads(hz("stat", "--json", str(path)).stdout)
    assert known["stats"]["bytes_live"] > 10 << 20
    assert 0 <= known["age"] < 60
    answer = as_other_user("stat", pid, "--dir", str(tmp_path))
    if "Permission denied" not in answer.stderr:
        assert answer.returncode == 0, answer.stderr
        assert "written by the process" in answer.stdout
    os.kill(held.pid, signal.SIGKILL)
    held.process.wait()
    left = hz("stat", pid, "--dir", str(tmp_path))
    assert left.returncode == 0
    assert "written by the process" in left.stdout


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hakozuna.1.stats"
    whole = "hz: stats line=hz3 version=0.1.0 build=release/gcc pid=7 program=x counting=0 bytes_live=5"
    for text in ("", "banana\n", whole, whole.replace("pid=7", "pid=x") + "\n", "x" * 100_000):
        path.write_text(text)
        with pytest.raises(UnseenError, match="is no statistics of a process"):
            stats_file.read(path)
    path.write_text(whole + "\n")
    assert stats_file.read(path).stats == {"counting": 0, "bytes_live": 5}
    answer = hz("stat", str(tmp_path / "nothing"))
    assert answer.returncode == 2
    assert "No such file" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_told_of_once(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
    done = subprocess.run(
        ["sleep", "2.4"],
        env=environment | {"LD_PRELOAD": str(library("hakozuna")), "HZ_STATS_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == f"hz: warning: HZ_STATS_DIR={folder}: no file can be written there\n"


def test_a_file_that_lies_in_the_way_is_not_written_through(hold: Holders, tmp_path: Path) -> None:
    """Whoever may write to the folder cannot have another file overwritten."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    held = hold("hakozuna", "busy", HZ_STATS_DIR=str(tmp_path))
    assert until(lambda: written(tmp_path, held.pid))
    name = stats_file.path_in(tmp_path, held.pid)
    name.with_suffix(".stats.new").symlink_to(precious)
    name.unlink()
    name.symlink_to(precious)
    assert until(lambda: not name.is_symlink())
    assert stats_file.read(name).pid == held.pid
    assert precious.read_text() == "mine"
