# SPDX-License-Identifier: Apache-2.0
"""Heap profiles of programs that CPython runs: each version that is installed, with its functions by file and line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hakozuna_observe import control, prof, profile
from hakozuna_observe.symbols import Frame, Names
from holders import LINES, QUICK, hz, library

KNOWN = range(8, 14)  # of 3: versions whose frames are known

# Marks are where blocks are allocated that stay: how many, and of how many bytes.
PROGRAM = """
import sys
import threading

kept = []


class Café:
    def keep(self, count):
        for number in range(count):
            kept.append(bytearray(2000))  # MARK method


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    for _ in range(1000):
        kept.append(
            bytearray(3000)  # MARK recursion
        )


def generate():
    for number in range(1000):
        yield bytearray(2500)  # MARK generator


def key(word):
    kept.append(bytearray(1500))  # MARK callback
    return word


def in_thread():
    for _ in range(1000):
        kept.append(bytearray(1700))  # MARK thread


def once(source):
    space = {"kept": kept}
    exec(compile(source, "once.py", "exec"), space)


Café().keep(1000)
recurse(20)
kept.extend(generate())
sorted(range(1000), key=key)
threads = [threading.Thread(target=in_thread) for _ in range(2)]
for one in threads:
    one.start()
for one in threads:
    one.join()
once("\\n" * 300 + "def gone():\\n  for i in range(1000):\\n    kept.append(bytearray(2200))\\ngone()\\ndel gone\\n")
for size in range(200):
    kept.append(b"x" * size * 50)  # MARK module
if len(sys.argv) > 1:
    print("ready", flush=True)
    sys.stdin.readline()
"""
MARKS = {
    match[1]: number for number, line in enumerate(PROGRAM.split("\n"), 1) if (match := re.search("MARK (.*)", line))
}


@dataclass(frozen=True)
class Python:
    """One that is installed."""

    path: Path
    minor: int


def _installed() -> list[Python]:
    """One of each minor version, and the system's."""
    found: dict[Path, Python] = {}
    folders = [Path("/usr/bin"), Path("/usr/local/bin"), *sorted(Path.home().glob(".pyenv/versions/3.*/bin"))]
    for folder in folders:
        for path in folder.glob("python3.*"):
            if match := re.fullmatch(r"python3\.([0-9]+)", path.name):
                found.setdefault(path.resolve(), Python(path, int(match[1])))
    return sorted(found.values(), key=lambda one: (one.minor, str(one.path)))


PYTHONS = _installed()
MODERN = [one for one in PYTHONS if one.minor in KNOWN]
if QUICK:
    MODERN = MODERN[-2:]
each = pytest.mark.parametrize("python", MODERN, ids=[f"3.{one.minor}-{one.path.parts[1]}" for one in MODERN])
newest = pytest.mark.parametrize("python", MODERN[-1:], ids=["newest"] if MODERN else [])


def test_some_version_is_installed() -> None:
    """This package needs a Python, so that there is nothing to skip silently."""
    assert sys.version_info[1] not in KNOWN or MODERN, PYTHONS


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The program."""
    folder = tmp_path / "café"
    folder.mkdir()
    file = folder / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def environment(left: Path, line: str = "hakozuna", **variables: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HZ_", "PYTHON"))}
    return {
        **kept,
        "LD_PRELOAD": str(library(line)),
        "HZ_PROFILE_HEAP": "2K",
        "HZ_PROFILE_HEAP_FILE": str(left),
        "PYTHONMALLOC": "malloc",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }


def left_by(python: Python, script: Path, line: str = "hakozuna", **variables: str) -> prof.Read:
    """What the program leaves at its end."""
    left = script.with_name("left.heap")
    subprocess.run([python.path, script], env=environment(left, line, **variables), check=True, timeout=60)
    return prof.read([str(left)], Names(is_asking=False))


def functions_of(stack: tuple[Frame, ...]) -> list[Frame]:
    return [frame for frame in stack if frame.is_interpreted]


def bytes_at(read: prof.Read, script: Path, mark: str) -> tuple[int, tuple[Frame, ...]]:
    """What is live of the line of a mark, and the whole stack of the largest part of it."""
    of_line = [
        (figures.live_bytes, stack)
        for stack, figures in read.sites
        if (inner := functions_of(stack)) and (inner[0].file, inner[0].line) == (str(script), MARKS[mark])
    ]
    return sum(amount for amount, _ in of_line), max(of_line, default=(0, ()))[1]


def check(read: prof.Read, script: Path, minor: int) -> None:
    """Every mark has its bytes, within what the choice of samples explains, and its callers."""
    qualified = minor >= 11
    expected = {
        "method": (2_000_000, ["Café.keep" if qualified else "keep", "<module>"]),
        "recursion": (3_000_000, ["recurse"] * 21 + ["<module>"]),
        "generator": (2_500_000, ["generate", "<module>"]),
        "callback": (1_500_000, ["key", "<module>"]),
        "thread": (3_400_000, ["in_thread", "Thread.run" if qualified else "run"]),
        "module": (995_000, ["<module>"]),
    }
    for mark, (amount, names) in expected.items():
        found, stack = bytes_at(read, script, mark)
        assert 0.8 * amount < found < 1.3 * amount, (mark, found)
        functions = functions_of(stack)
        assert [one.function for one in functions][: len(names)] == names, mark
        assert stack[-len(functions) :] == tuple(functions), "what evaluates them is not shown"
    gone = [
        (figures.live_bytes, functions[:3])
        for stack, figures in read.sites
        if (functions := functions_of(stack)) and (functions[0].file, functions[0].line) == ("once.py", 303)
    ]
    assert [(one.function, one.line) for one in gone[0][1]] == [
        ("gone", 303),
        ("<module>", 304),
        ("once", PROGRAM.split("\n").index('    exec(compile(source, "once.py", "exec"), space)') + 1),
    ]
    assert 0.8 * 2_200_000 < sum(amount for amount, _ in gone) < 1.3 * 2_200_000


@each
def test_functions_by_file_and_line(python: Python, script: Path) -> None:
    check(left_by(python, script), script, python.minor)


@newest
@pytest.mark.parametrize("line", [line for line in LINES if line not in ("hakozuna", "hz7")][: 1 if QUICK else None])
def test_every_line_that_keeps_a_profile(line: str, python: Python, script: Path) -> None:
    check(left_by(python, script, line), script, python.minor)


@newest
def test_guarded_blocks_do_not_disturb(python: Python, script: Path) -> None:
    check(left_by(python, script, HZ_GUARD_SAMPLE="500"), script, python.minor)


@pytest.mark.parametrize(
    "python",
    [one for one in PYTHONS if one.minor not in KNOWN]
    or [pytest.param(None, marks=pytest.mark.skip("none installed"))],
)
def test_an_unknown_version_has_native_frames_alone(python: Python, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("kept = [bytearray(2000) for _ in range(1000)]\nimport os\nos._exit(0)\n")
    left = tmp_path / "left.heap"
    held = subprocess.Popen(
        [python.path, "-c", "kept = [bytearray(2000) for _ in range(1000)]\nprint('ready', flush=True)\ninput()"],
        env=environment(left),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert held.stdout is not None
    assert held.stdout.readline() == b"ready\n"
    read = prof.read([str(held.pid)], Names(is_asking=False))
    held.communicate(b"\n")
    assert held.returncode == 0
    assert not any(functions_of(stack) for stack, _ in read.sites)
    assert max(len(stack) for stack, _ in read.sites) > 10


@each
def test_a_process_that_runs(python: Python, script: Path) -> None:
    left = script.with_name("left.heap")
    held = subprocess.Popen(
        [python.path, script, "stay"], env=environment(left), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert held.stdout is not None
    assert held.stdout.readline() == b"ready\n"
    (one,) = profile.of_process(held.pid)
    check(prof.read([str(held.pid)], Names(is_asking=False)), script, python.minor)
    assert not one.hides_objects
    held.terminate()  # a signal's handler writes the file
    held.communicate()
    (written,) = prof.read([str(left)], Names(is_asking=False)).profiles
    assert written.functions.items() >= one.functions.items()
    assert profile.write(written) == left.read_text(encoding="utf-8")


@newest
def test_a_profile_that_begins_late(python: Python, script: Path) -> None:
    left = script.with_name("left.heap")
    late = PROGRAM.replace("\nCafé().keep", "\nprint('before', flush=True)\nsys.stdin.readline()\nCafé().keep")
    script.write_text(late, encoding="utf-8")
    held = subprocess.Popen(
        [python.path, script, "stay"],
        env=environment(left, HZ_PROFILE_HEAP="0", HZ_CONTROL="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert held.stdin is not None
    assert held.stdout is not None
    assert held.stdout.readline() == b"before\n"
    assert control.ask(held.pid, "set profile_heap 2K") == "2048"
    held.stdin.write(b"\n")
    held.stdin.flush()
    assert held.stdout.readline() == b"ready\n"
    read = prof.read([str(held.pid)], Names(is_asking=False))
    held.communicate(b"\n")
    found = [functions_of(stack)[0].function for stack, figures in read.sites if figures.live_bytes > 1_000_000]
    assert {"recurse", "generate", "key", "in_thread", "gone"} <= set(found)


CROSSED = """
import os, signal, sys, threading, zlib
kept = []
def without_lock():
    for _ in range(10):
        zlib.decompress(zlib.compress(b"x" * 100000))  # compresses without the lock, and allocates meanwhile
def forks():
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            more = [bytearray(1000) for _ in range(2000)]
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
def handler(number, frame):
    kept.append(bytearray(3000))
def subinterpreters():
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            return
    for _ in range(3):
        one = module.create()
        module.run_string(one, "inner = [bytearray(1000) for _ in range(1000)]")
        module.destroy(one)
def daemon():
    while True:
        [bytearray(900) for _ in range(100)]
class Last:
    def __del__(self):
        self.late = [bytearray(1000) for _ in range(1000)]
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
threads = [threading.Thread(target=without_lock) for _ in range(3)]
for one in threads: one.start()
forks()
subinterpreters()
for one in threads: one.join()
signal.setitimer(signal.ITIMER_REAL, 0)
for _ in range(2): threading.Thread(target=daemon, daemon=True).start()
try:
    (lambda f: f(f))(lambda f: f(f))  # as deep as it may be
except RecursionError:
    pass
last = Last()
"""


@each
@pytest.mark.parametrize("line", ["hakozuna", "secure"] if "secure" in LINES else ["hakozuna"])
def test_threads_forks_signals_subinterpreters_and_the_end(line: str, python: Python, tmp_path: Path) -> None:
    script, left = tmp_path / "crossed.py", tmp_path / "left.%p.heap"
    script.write_text(CROSSED)
    for interval in ("4000",) if QUICK else ("4000", "20000"):
        answer = subprocess.run(
            [python.path, "-W", "ignore", script],
            env=environment(left, line, HZ_PROFILE_HEAP=interval, HZ_GUARD_SAMPLE="300"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (answer.returncode, answer.stderr) == (0, "")
    files = list(tmp_path.glob("left.*.heap"))
    assert files
    names = {one.name for file in files for one in profile.read(str(file)).functions.values()}
    assert {"forks", "without_lock"} <= names


EMBEDDED = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | (argc > 3 ? RTLD_LOCAL : RTLD_GLOBAL));
  if (!library) return puts(dlerror()), 2;
  void (*begin)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
  int (*run)(const char*) = (int (*)(const char*))dlsym(library, "PyRun_SimpleString");
  int (*end)(void) = (int (*)(void))dlsym(library, "Py_FinalizeEx");
  for (int i = 0; i < 2; ++i) {
    begin(0);
    dlopen("libm.so.6", RTLD_NOW);  /* as the interpreter does for a module */
    if (run("def held():\\n  global kept\\n  kept = [bytearray(2000) for _ in range(2000)]\\nheld()\\n") != 0) return 3;
    if (argc > 2 && *argv[2] == 'f') end();
    free(malloc(1000000));
  }
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@each
def test_an_interpreter_that_is_loaded_late(python: Python, tmp_path: Path) -> None:
    folder = python.path.resolve().parents[1] / "lib"
    libraries = [*folder.glob(f"libpython3.{python.minor}.so.1.0"), *folder.glob(f"*/libpython3.{python.minor}.so.1.0")]
    if not libraries:
        pytest.skip("this Python has no library")
    source, program, left = tmp_path / "embedded.c", tmp_path / "embedded", tmp_path / "left.heap"
    source.write_text(EMBEDDED)
    subprocess.run(["cc", "-w", "-o", program, source, "-ldl"], check=True)
    for mode in (["f"], ["x", "local"]):  # one that ends and begins again, and one that no name is taken from
        home = {"PYTHONHOME": str(python.path.resolve().parents[1])}
        subprocess.run([program, libraries[0], *mode], env=environment(left, **home), check=True, timeout=60)
        functions = profile.read(str(left)).functions.values()
        assert "held" in {one.name for one in functions}, mode


@newest
def test_more_lines_than_there_is_room_for(python: Python, tmp_path: Path) -> None:
    script, left = tmp_path / "long.py", tmp_path / "left.heap"
    lines = "kept.append(bytearray(4000))\n" * 2000
    script.write_text(f"kept = []\nfor part in range(6):\n    exec(compile({lines!r}, f'{{part}}.py', 'exec'))\n")
    subprocess.run([python.path, script], env=environment(left), check=True, timeout=60)
    read = prof.read([str(left)], Names(is_asking=False))
    (one,) = read.profiles
    assert len(one.functions) == 8192
    without_room = [figures for stack, figures in read.sites if stack[0].function == "[python]"]
    assert sum(figures.live_bytes for figures in without_room) > 1_000_000
    assert one.dropped == 0


@newest
def test_one_command_tells_a_leak_by_file_and_line(python: Python, tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "cache = {}\n\n\ndef remember(number):\n    cache[number] = {'name': f'user {number}'}\n\n\n"
        "for number in range(60000):\n    remember(number)\n"
    )
    began = time.monotonic()
    answer = subprocess.run(
        [hz_path(), "run", "--profile-heap", "--leaks", "--", python.path, script],
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert time.monotonic() - began < 10
    assert answer.returncode == 99, answer.stderr
    largest = answer.stderr.split("\n\n")[1]
    assert re.search(rf"#0 +remember +{re.escape(str(script))}:5\n", largest), answer.stderr


def hz_path() -> str:
    return str(Path(hz("help").args[0]))


def test_small_objects_in_pythons_own_allocator_are_told(
    capsys: pytest.CaptureFixture[str], script: Path, tmp_path: Path
) -> None:
    if not MODERN:
        pytest.skip("no Python of these versions is installed")
    variables = environment(tmp_path / "left.heap", PYTHONMALLOC="")
    held = subprocess.Popen(
        [MODERN[-1].path, script, "x"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert held.stdout is not None
    assert held.stdout.readline() == b"ready\n"
    assert any("PYTHONMALLOC=malloc" in note for note in prof.notes(prof.read([str(held.pid)], Names(is_asking=False))))
    held.communicate(b"\n")


def test_a_python_without_a_lock_keeps_its_allocator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("python3.13t", "python3.13"):
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "python3").symlink_to("python3.13t")
    script = tmp_path / "service"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    answers = {name: prof._is_free_threaded(name) for name in ("python3.13t", "python3", "service", "python3.13", "sh")}
    assert answers == {"python3.13t": True, "python3": True, "service": True, "python3.13": False, "sh": False}
