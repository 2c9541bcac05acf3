# SPDX-License-Identifier: Apache-2.0
"""The tests of other allocators that ask for nothing but the standard interface, compiled without those allocators:
mimalloc's stress test, and jemalloc's tests of malloc, aligned_alloc and posix_memalign with a test support of ours in
the place of theirs. Seconds of a compiler, and a minute or two a turn."""

from collections.abc import Sequence
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.automake import read
from hakozuna_lab.suites.suite import Ready, Suite

INCLUDE = Path(__file__).with_name("include")
SECONDS = 600
# The others name what is jemalloc's own.
OF_JEMALLOC = ("integration/aligned_alloc", "integration/malloc", "integration/posix_memalign")
COMPILER = ("gcc", "-std=gnu11", "-O1", "-fno-builtin", "-w", "-D_GNU_SOURCE", f"-I{INCLUDE}")
STRESSES = {"few threads": ("4", "50", "20"), "many threads": ("32", "20", "10"), "one thread": ("1", "50", "20")}


def prepare_mimalloc(cache: Path) -> Ready:
    got = sources.debian(cache, "mimalloc")
    folder, log = got.folder.parent / "build", got.folder.parent / "build.log"
    stress = [*COMPILER, "-DUSE_STD_MALLOC", str(got.folder / "test/test-stress.c"), "-pthread"]
    program = sources.compiled(folder, [("test-stress", stress)], log)[0].command
    built = [sources.Built(f"test-stress, {how}", [*program, *sizes]) for how, sizes in STRESSES.items()]
    sources.list_programs(folder, built)
    return Ready(got.version, folder)


def prepare_jemalloc(cache: Path) -> Ready:
    got = sources.debian(cache, "jemalloc")
    folder, log = got.folder.parent / "build", got.folder.parent / "build.log"
    jobs: list[tuple[str, Sequence[str]]] = [
        (name, [*COMPILER, str(got.folder / f"test/{name}.c"), "-pthread"]) for name in OF_JEMALLOC
    ]
    sources.list_programs(folder, sources.compiled(folder, jobs, log))
    return Ready(got.version, folder)


MIMALLOC = Suite("mimalloc", "mimalloc's tests by malloc", prepare_mimalloc, sources.each(SECONDS), read, 3600)
JEMALLOC = Suite("jemalloc", "jemalloc's tests by malloc", prepare_jemalloc, sources.each(SECONDS), read, 3600)
