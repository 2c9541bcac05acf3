# SPDX-License-Identifier: Apache-2.0
"""libstdc++'s tests of operator new, allocators, memory resources, smart pointers, vectors and strings, compiled by the
installed g++ of that version. Ten minutes of a compiler at first, then a minute or two a turn."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.automake import read
from hakozuna_lab.suites.suite import AbsentError, Ready, Suite

FOLDERS = (
    "18_support/new*", "18_support/bad_alloc", "20_util/allocator", "20_util/allocator_traits",
    "20_util/*pool_resource", "20_util/monotonic_buffer_resource", "20_util/memory_resource",
    "20_util/polymorphic_allocator", "20_util/shared_ptr", "20_util/unique_ptr", "20_util/temporary_buffer*",
    "21_strings/basic_string/allocator", "21_strings/basic_string/capacity", "23_containers/vector",
    "23_containers/deque", "ext/*_allocator",
)  # fmt: skip
SUPPORT = ("testsuite_hooks.cc", "testsuite_allocator.cc", "testsuite_character.cc")
SECONDS = 300
# What says that a file is no program to be run here as it is.
OTHER = re.compile(r"dg-error|xfail|dg-do (?:compile|link|preprocess|assemble)|dg-require-(?!effective|string)")
OPTIONS = re.compile(r'\{ dg-(?:additional-)?options "([^"]*)"')
TARGETS = re.compile(r"dg-require-effective-target (\S+)")
HAVE = re.compile(r"c\+\+(?:11|14|17|20|2a)|std_allocator_new|hosted|cxx11.abi")
COMPILER = ("g++", "-g", "-O1", "-w", "-pthread", "-D_GLIBCXX_ASSERT")
USUAL = "-std=gnu++17"


def flags(text: str) -> list[str] | None:
    """What that test is to be compiled with; None: it is not to be run here."""
    if OTHER.search(text) or "main" not in text:
        return None
    if not all(HAVE.fullmatch(target) for target in TARGETS.findall(text)):
        return None
    said = [word for options in OPTIONS.findall(text) for word in options.split()]
    newest = re.search(r"dg-do run \{ target c\+\+(20|2a)", text)
    standard = [] if any(word.startswith("-std=") for word in said) else ["-std=gnu++20" if newest else USUAL]
    return [*standard, *said]


def source(cache: Path) -> tuple[str, Path]:
    """Of the installed compiler's version, out of the archive that its package of sources has."""
    major = sources.said(["g++", "-dumpversion"]).split(".")[0]
    if not major:
        raise AbsentError("g++ is missing")
    package, log = f"gcc-{major}-source", cache / "libstdcxx.log"
    version = sources.said(["g++", "-dumpfullversion"])
    folder = cache / f"libstdcxx_{version}"
    if not folder.exists():
        got = sources.unpacked(cache, package, log)
        archives = sorted(got.glob("usr/src/gcc-*/gcc-*.tar.xz"))
        if not archives:
            raise AbsentError(f"{package} has no archive of GCC's sources")
        part = cache / "libstdcxx.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        inside = ["--wildcards", "*/libstdc++-v3/testsuite", "--strip-components=2"]
        sources.must("tar", ["tar", "-xf", str(archives[0]), "-C", str(part), *inside], log)
        part.rename(folder)
        shutil.rmtree(got)
    return version, folder / "testsuite"


def programs(tree: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and flags of each."""
    for folder in FOLDERS:
        for file in sorted(tree.glob(f"{folder}/**/*.cc")):
            wanted = flags(file.read_text(encoding="utf-8", errors="replace"))
            if wanted is not None:
                yield str(file.relative_to(tree).with_suffix("")), wanted


def prepare(cache: Path) -> Ready:
    version, tree = source(cache)
    folder, log = tree.parent / "build", tree.parent / "build.log"
    if not (folder / "programs.json").exists():
        folder.mkdir(exist_ok=True)
        support = [str(tree / "util" / name) for name in SUPPORT if (tree / "util" / name).exists()]
        archive = folder / "libsupport.a"
        sources.must("g++", [*COMPILER, USUAL, f"-I{tree}/util", "-c", *support], log, folder)
        sources.must("ar", ["ar", "rcs", str(archive), *map(str, sorted(folder.glob("*.o")))], log)
        jobs = [
            (name, [*COMPILER, f"-I{tree}/util", f"{tree}/{name}.cc", str(archive), *wanted])
            for name, wanted in dict(programs(tree)).items()
        ]
        sources.list_programs(folder, sources.compiled(folder / "tests", jobs, log))
    return Ready(version, folder)


LIBSTDCXX = Suite("libstdcxx", "libstdc++'s tests of what allocates", prepare, sources.each(SECONDS), read, 3600)
