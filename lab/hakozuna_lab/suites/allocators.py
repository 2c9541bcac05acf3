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
COMPILER = ("gcc", "-std=gnu11", "-O1", "-fno-builtin", "-w", "-D_GNU_SOURCE", f"-I{INCLUDE}")
STRESSES = {"few threads": ("4", "50", "20"), "many threads": ("32", "20", "10"), "one thread": ("1", "50", "20")}


def prepare_mimalloc(cache: Path) -> Ready:
    got = sources.debian(cache, "mimalloc")
    folder, log = got.folder.parent / "build", got.folder.parent / "build.log"
    test = got.folder / "test"
    jobs: list[tuple[str, Sequence[str]]] = [
        ("test-stress", [*COMPILER, "-DUSE_STD_MALLOC", str(test / "test-stress.c"), "-pthread"]),
        ("main-override", [*COMPILER, str(test / "main-override.c"), "-pthread"]),
        ("main-override.cpp", ["g++", "-O1", "-w", f"-I{INCLUDE}", str(test / "main-override.cpp"), "-pthread"]),
    ]
    built = sources.compiled(folder, jobs, log)
    stress = [one for one in built if one.name == "test-stress"]
    named = [
        sources.Built(f"test-stress, {how}", [*one.command, *sizes])
        for one in stress
        for how, sizes in STRESSES.items()
    ]
    sources.list_programs(folder, [*named, *(one for one in built if one not in stress)])
    return Ready(got.version, folder)


def prepare_jemalloc(cache: Path) -> Ready:
    """Whichever of its tests compile without its headers are those that need none of them."""
    got = sources.debian(cache, "jemalloc")
    folder, log = got.folder.parent / "build", got.folder.parent / "build.log"
    tests = [file for kind in ("integration", "unit") for file in sorted((got.folder / "test" / kind).glob("*.c"))]
    jobs: list[tuple[str, Sequence[str]]] = [
        (file.stem, [*COMPILER, "-Werror=implicit-function-declaration", str(file), "-pthread"]) for file in tests
    ]
    sources.list_programs(folder, sources.compiled(folder, jobs, log))
    return Ready(got.version, folder)


MIMALLOC = Suite("mimalloc", "mimalloc's tests by malloc", prepare_mimalloc, sources.each(SECONDS), read, 3600)
JEMALLOC = Suite("jemalloc", "jemalloc's tests by malloc", prepare_jemalloc, sources.each(SECONDS), read, 3600)
