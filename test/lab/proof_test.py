# SPDX-License-Identifier: Apache-2.0
"""Which malloc a process calls: every way in which a preload does not take effect must be seen."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hakozuna_lab.contender import find_line, line_names
from hakozuna_lab.paths import BUILD
from hakozuna_lab.proof import ProofError, defines_malloc, identity, malloc_file

LIBRARY = find_line(line_names()[0]).library
OTHERS = BUILD / "test/launcher"  # programs and a library made for the tests of `hz doctor`


@contextmanager
def sleeping(*preloads: object, program: object = "sleep") -> Iterator[int]:
    env = os.environ | {"LD_PRELOAD": ":".join(map(str, preloads))}
    process = subprocess.Popen([str(program), "60"], env=env, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def asked(pid: int) -> Path:
    """As the watcher does: again until the loader is done."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if file := malloc_file(pid):
            return file
    raise TimeoutError


def test_the_c_library() -> None:
    with sleeping() as pid:
        assert asked(pid).name.startswith("libc.so")


def test_ours() -> None:
    with sleeping(LIBRARY) as pid:
        assert asked(pid) == LIBRARY


def test_a_preload_that_does_not_exist() -> None:
    with sleeping("/nowhere/libx.so") as pid:
        assert asked(pid).name.startswith("libc.so")


def test_another_malloc_comes_first() -> None:
    other = OTHERS / "libhz-own-malloc.so"
    with sleeping(other, LIBRARY) as pid:
        assert asked(pid) == other
    with sleeping(LIBRARY, other) as pid:
        assert asked(pid) == LIBRARY


def test_a_program_with_its_own_malloc() -> None:
    program = OTHERS / "hz-own-malloc"
    with sleeping(LIBRARY, program=program) as pid:
        assert asked(pid) == program


def test_a_static_program() -> None:
    with (
        sleeping(LIBRARY, program=OTHERS / "hz-static-sleep") as pid,
        pytest.raises(ProofError, match="static program"),
    ):
        asked(pid)


def test_a_process_that_has_ended() -> None:
    with sleeping() as pid:
        asked(pid)
    assert malloc_file(pid) is None


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize(
    ("source", "defined"),
    [
        # Linkers store "malloc" as the end of "xmalloc".
        ("void *malloc(unsigned long); void *xmalloc(void) { return malloc(8); }", False),
        ("void *xmalloc(void) { return 0; } void *malloc(unsigned long n) { return (void *)n; }", True),
        ("void *malloc_usable(void) { return 0; }", False),
        ("static void *malloc(unsigned long n) { return (void *)n; } void *f(void) { return malloc(9); }", False),
    ],
)
def test_what_a_library_defines(tmp_path: Path, source: str, defined: bool) -> None:
    library = tmp_path / "libx.so"
    subprocess.run(
        ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-Wl,-O2", "-xc", "-", "-o", str(library)],
        input=source.encode(), check=True,
    )  # fmt: skip
    assert defines_malloc(library, *identity(library)) is defined
