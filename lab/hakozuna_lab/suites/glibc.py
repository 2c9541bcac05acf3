# SPDX-License-Identifier: Apache-2.0
"""glibc's tests of malloc, malloc/tst-*.c, compiled against the system's C library: those that do with its public
interface. Some minutes of a compiler at first, then a minute a turn."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.automake import read
from hakozuna_lab.suites.suite import Ready, Suite

# Of the test support: what needs nothing of the C library's inside, and what its tests of malloc call.
SUPPORT = (
    "check", "delayed_exit", "ignore_stderr", "oom_error", "set_fortify_handler", "support_paths",
    "support_quote_blob", "support_quote_string", "support_record_failure", "support_set_small_thread_stack_size",
    "support_shared_allocate", "support_subprocess", "support_test_compare_failure", "support_test_main",
    "support_test_verify_impl", "temp_file", "write_message", "xasprintf", "xcalloc", "xchdir", "xclose", "xdup2",
    "xfclose", "xfopen", "xfork", "xmalloc", "xmemstream", "xmmap", "xmunmap", "xopen", "xpipe", "xposix_memalign",
    "xraise", "xrealloc", "xsigaction", "xsignal", "xstrdup", "xstrndup", "xsysconf", "xwaitpid", "xwrite",
)  # fmt: skip
HEADERS = ("array_length.h", "libc-diag.h", "libc-pointer-arith.h")
SECONDS = 300
# Its tests have limits of their own, mostly 20 seconds, made for a machine that is idle.
PATIENT = ("env", "TIMEOUTFACTOR=10")
# Where the C library's own build is: there is none, and the tests of malloc only say so.
NOWHERE = (
    "SRCDIR", "OBJDIR", "OBJDIR_ELF_LDSO", "INSTDIR", "LIBDIR", "BINDIR", "SBINDIR", "SLIBDIR", "ROOTSBINDIR",
    "COMPLOCALEDIR",
)  # fmt: skip
COMPILER = (
    "gcc", "-std=gnu11", "-O1", "-fno-builtin", "-w", "-D_GNU_SOURCE", "-DTIMEOUTFACTOR=1", "-include", "limits.h"
)  # fmt: skip


def flags(folder: Path, tree: Path) -> list[str]:
    shown = (folder / "include", tree / "support", tree / "malloc")
    return [*COMPILER, *(f'-D{name}_PATH=""' for name in NOWHERE), *(f"-I{one}" for one in shown)]


def support(folder: Path, tree: Path, log: Path) -> Path:
    """The test support as a library. Headers of the C library's inside would come before the system's: three are
    let in."""
    archive = folder / "libsupport.a"
    if archive.exists():
        return archive
    include = folder / "include"
    include.mkdir(parents=True, exist_ok=True)
    for name in HEADERS:
        shutil.copy(tree / "include" / name, include)
    shutil.copytree(tree / "support", include / "support", dirs_exist_ok=True)
    objects = folder / "support"
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir()
    found = [tree / "support" / f"{name}.c" for name in SUPPORT]
    found += sorted((tree / "support").glob("xpthread_*.c"))
    files = [str(file) for file in found if file.exists()]
    sources.may([*flags(folder, tree), "-c", *files], log, objects)
    sources.must("ar", ["ar", "rcs", str(archive), *map(str, sorted(objects.glob("*.o")))], log)
    return archive


def prepare(cache: Path) -> Ready:
    got = sources.debian(cache, "glibc", sources.installed_version("libc6"))
    folder, log = got.folder.parent / "build", got.folder.parent / "build.log"
    if not (folder / "programs.json").exists():
        archive = support(folder, got.folder, log)
        tests = sorted((got.folder / "malloc").glob("tst-*.c"))
        jobs: list[tuple[str, Sequence[str]]] = [
            (test.stem, [*flags(folder, got.folder), str(test), str(archive), "-pthread"]) for test in tests
        ]
        built = sources.compiled(folder / "tests", jobs, log)
        patient = [sources.Built(one.name, [*PATIENT, *one.command]) for one in built]
        sources.list_programs(folder, patient)
    return Ready(got.version, folder)


GLIBC = Suite("glibc", "glibc's malloc/tst-*", prepare, sources.each(SECONDS), read, 3600)
