# SPDX-License-Identifier: Apache-2.0
#
# `hz doctor`: every reason why a program may not be served by us is arranged once and must be named.
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launcher import DEFAULT, HELPERS, LINES, ROOT, Running, environment, hz, library

SLEEP = shutil.which("sleep")
STATIC = HELPERS / "hz-static-sleep"
OWN_MALLOC = HELPERS / "hz-own-malloc"
OWN_HEAP = HELPERS / "hz-own-heap"
INSIDE = HELPERS / "hz-inside"
ASKS_JEMALLOC = HELPERS / "hz-asks-jemalloc"
OWN_MALLOC_LIBRARY = HELPERS / "libhz-own-malloc.so"


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.scratch = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def expect(self, code, *words, args, **changes):
        result = hz("doctor", *args, **changes)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout + result.stderr)


class OfProcess(Doctor):
    def test_active_on_every_line(self):
        for line in LINES:
            with Running([ROOT / "hz", "run", "--line", line, "--", SLEEP, "60"]) as pid:
                self.expect(0, f"yes, line {line}\n", args=[pid])

    def test_not_preloaded(self):
        with Running([SLEEP, "60"]) as pid:
            self.expect(1, "LD_PRELOAD did not name us", args=[pid])

    def test_static(self):
        with Running([ROOT / "hz", "run", "--", STATIC, "60"]) as pid:
            self.expect(1, "static program", args=[pid])

    def test_preload_that_does_not_exist(self):
        with Running([SLEEP, "60"], LD_PRELOAD="/nowhere/libhakozuna-hz3.so") as pid:
            self.expect(1, "/nowhere/libhakozuna-hz3.so, which does not exist", args=[pid])

    def test_preload_of_a_bare_name(self):
        name = f"libhakozuna-{DEFAULT}.so.0"
        with Running([SLEEP, "60"], LD_PRELOAD=name, LD_LIBRARY_PATH=str(library().parent)) as pid:
            self.expect(0, f"yes, line {DEFAULT}\n", args=[pid])

    def test_other_malloc_in_front(self):
        with Running([ROOT / "hz", "run", "--", SLEEP, "60"], LD_PRELOAD=str(OWN_MALLOC_LIBRARY)) as pid:
            self.expect(1, "comes first in LD_PRELOAD", "another malloc is asked first", args=[pid])

    def test_program_with_its_own_malloc(self):
        with Running([ROOT / "hz", "run", "--", OWN_MALLOC, "60"]) as pid:
            self.expect(1, "brings its own malloc", args=[pid])

    def test_program_with_its_own_heap(self):
        with Running([ROOT / "hz", "run", "--", OWN_HEAP, "60"]) as pid:
            self.expect(0, f"yes, line {DEFAULT}, but not what mimalloc allocates\n", "mimalloc is linked in", args=[pid])

    def test_python(self):
        python = Path(sys.executable).resolve()
        command = [ROOT / "hz", "run", "--", python, "-c", "import signal, sys; print('up', flush=True); signal.pause()"]
        for setting, word in ((None, "but not what pymalloc allocates"), ("malloc", f"yes, line {DEFAULT}\n")):
            with subprocess.Popen(list(map(str, command)), env=environment(PYTHONMALLOC=setting), text=True,
                                  stdout=subprocess.PIPE) as process:
                self.assertEqual(process.stdout.readline(), "up\n")
                try:
                    self.expect(0, word, args=[process.pid])
                finally:
                    process.kill()

    def test_another_allocator_is_loaded(self):
        other = self.scratch / "libjemalloc.so.2"
        shutil.copy(OWN_MALLOC_LIBRARY, other)
        with Running([SLEEP, "60"], LD_PRELOAD=f"{library()}:{other}") as pid:
            self.expect(0, f"another allocator is loaded, too: {other}\n", args=[pid])

    @unittest.skipUnless(INSIDE.exists(), "no static library is built")
    def test_linked_into_the_program(self):
        with Running([INSIDE, "60"]) as pid:
            self.expect(0, f"linked into the program (line {DEFAULT})", f"yes, line {DEFAULT}\n", args=[pid])

    def test_linked_with_jemalloc(self):
        for line, said in (("je", "with jemalloc's functions"), (LINES[0], "use hz run --line je")):
            with Running([ROOT / "hz", "run", "--line", line, "--", ASKS_JEMALLOC, "60"]) as pid:
                self.expect(0, said, args=[pid])

    def test_library_replaced_on_disk(self):
        copy = self.scratch / library().name
        shutil.copy(library(), copy)
        with Running([SLEEP, "60"], LD_PRELOAD=str(copy)) as pid:
            copy.unlink()
            self.expect(0, f"yes, line {DEFAULT}\n", "(deleted)", args=[pid])

    def test_no_such_process(self):
        beyond = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8")) + 1
        self.expect(1, "there is no process", args=[beyond])

    def test_no_number(self):
        self.expect(2, "no process id", args=["nonsense"])


class OfProgram(Doctor):
    def test_fine(self):
        self.expect(0, "it would be", args=["--", "sleep"])

    def test_fine_on_every_line(self):
        for line in LINES:
            self.expect(0, str(library(line)), args=["--line", line, "--", "sleep"])

    def test_static(self):
        self.expect(1, "static program", args=["--", STATIC])

    def test_linked_with_jemalloc(self):
        self.expect(0, str(library("je")), "is linked with jemalloc: line je", args=["--", ASKS_JEMALLOC])
        self.expect(0, str(library()), args=["--line", LINES[0], "--", ASKS_JEMALLOC])

    def test_the_name_is_the_one_that_was_given(self):
        named = self.scratch / "named"
        named.symlink_to(shutil.which("sleep"))
        self.expect(0, f"{named} under hz run", args=["--", named])

    def test_linked_with_us(self):
        self.expect(0, f"linked      with libhakozuna-{DEFAULT}.so.", args=["--", HELPERS / "hz-linked"])

    def test_linked_but_not_needed(self):
        self.expect(0, "linked      but not needed: the linker dropped", args=["--", HELPERS / "hz-linked-in-vain"])

    def test_own_malloc(self):
        self.expect(1, "brings its own malloc", args=["--", OWN_MALLOC])

    def test_own_heaps(self):
        """What a stripped program says gives its heap away; a copy of sleep that says it stands for the program."""
        program = self.scratch / "sleep"
        for said, name in (
            (b"mimalloc: error: ", "mimalloc"),
            (b"<jemalloc>: ", "jemalloc"),
            (b"_rjem_mallctl", "jemalloc"),
            (b"je_mallctl", "jemalloc"),
            (b"tcmalloc: large alloc %llu", "tcmalloc"),
            (b"rpmalloc_initialize", "rpmalloc"),
            (b"sn_rust_alloc", "snmalloc"),
            (b"PartitionAlloc", "PartitionAlloc"),
            (b"Ineffective mark-compacts near heap limit", "V8"),
            (b"\xff Go buildinf:", "Go"),
            (b"PYTHONMALLOC", "pymalloc"),
            (b"", ""),
        ):
            program.write_bytes(Path(SLEEP).read_bytes() + b"\0" + said + b"\0")
            program.chmod(0o755)
            self.expect(0, f"it would be, but not what {name} allocates\n" if name else "it would be\n",
                        args=["--", program])
        self.expect(0, "it would be, but not what mimalloc allocates\n", args=["--", OWN_HEAP])
        python = Path(sys.executable).resolve()
        self.expect(0, "PYTHONMALLOC=malloc gives them to us", args=["--", python])
        self.expect(0, "it would be\n", args=["--", python], PYTHONMALLOC="malloc")

    def test_sanitizers(self):
        program = self.scratch / "sleep"
        for name in (b"__asan_init", b"__tsan_init", b"__msan_init", b"__hwasan_init"):
            program.write_bytes(Path(SLEEP).read_bytes() + b"\0" + name + b"\0")
            program.chmod(0o755)
            self.expect(1, "a sanitizer's runtime is linked in", args=["--", program])

    def test_other_malloc_in_front(self):
        self.expect(1, "comes first in LD_PRELOAD", args=["--", "sleep"], LD_PRELOAD=str(OWN_MALLOC_LIBRARY))

    def test_a_loader_of_the_programs_choice_is_not_run(self):
        content = Path(SLEEP).read_bytes()
        theirs = re.search(rb"/lib[^\0]*/ld[^\0]*\0", content)[0]
        with tempfile.NamedTemporaryFile(prefix="hz", dir="/tmp", mode="w") as trace:
            loader = Path(f"{trace.name}l")
            loader.write_text(f"#!/bin/sh\necho ran >{trace.name}\n", encoding="utf-8")
            loader.chmod(0o755)
            self.addCleanup(loader.unlink)
            program = self.scratch / "sleep"
            program.write_bytes(content.replace(theirs, str(loader).encode().ljust(len(theirs), b"\0"), 1))
            program.chmod(0o755)
            self.expect(0, "none of the system's", args=["--", program])
            hz("run", "--", program, "0")  # the kernel takes no script for a loader
            self.assertEqual(Path(trace.name).read_text(encoding="utf-8"), "")

    def test_a_command_of_the_shell_is_a_program_too(self):
        self.expect(0, "it would be\n", args=["--", "printf"])

    def test_another_of_ours_in_front(self):
        for line in LINES:
            self.expect(0, "it would be\n", args=["--line", line, "--", "sleep"], LD_PRELOAD=f"libhakozuna-{DEFAULT}.so.0",
                        LD_LIBRARY_PATH=str(library().parent))

    def test_setuid(self):
        program = self.scratch / "privileged"
        shutil.copy(SLEEP, program)
        program.chmod(0o4755)
        if not program.stat().st_mode & 0o4000:
            self.skipTest("this file system knows no setuid")
        self.expect(1, "setuid", args=["--", program])

    def test_musl(self):
        glibc, musl = b"/lib64/ld-linux-x86-64.so.2\0", b"/lib/ld-musl-x86_64.so.1\0"
        content = Path(SLEEP).read_bytes()
        if glibc not in content:
            self.skipTest("no x86-64 glibc program at hand")
        program = self.scratch / "of-musl"
        program.write_bytes(content.replace(glibc, musl.ljust(len(glibc), b"\0")))
        program.chmod(0o755)
        self.expect(1, "uses musl", "our library is built for glibc", args=["--", program])

    def test_library_for_musl(self):
        """As `cmake --preset musl` builds one: it asks for libc.so, whatever else is in it."""
        ours = library(DEFAULT).read_bytes()
        if b"libc.so.6\0" not in ours:
            self.skipTest("our library is for another C library than glibc")
        (self.scratch / library(DEFAULT).name).write_bytes(ours.replace(b"libc.so.6\0", b"libc.so\0\0\0"))
        self.expect(1, "uses glibc", "our library is built for musl", args=["--", SLEEP], HZ_BUILD_DIR=str(self.scratch))

    def test_other_processor(self):
        content = bytearray(Path(SLEEP).read_bytes())
        content[18:20] = (243).to_bytes(2, "little")  # RISC-V
        program = self.scratch / "of-riscv"
        program.write_bytes(content)
        program.chmod(0o755)
        self.expect(1, "another kind of processor", args=["--", program])

    def test_32_bit(self):
        content = bytearray(Path(SLEEP).read_bytes())
        content[4] = 1
        program = self.scratch / "of-32-bit"
        program.write_bytes(content)
        program.chmod(0o755)
        self.expect(1, "not a 64-bit ELF", args=["--", program])

    def test_script(self):
        script = self.scratch / "script"
        script.write_text("#! /bin/sh -e\n:\n", encoding="utf-8")
        script.chmod(0o755)
        self.expect(0, "its program is /bin/sh\n", args=["--", script])
        script.write_text("#!/usr/bin/env -S X=1 sh -e\n:\n", encoding="utf-8")
        self.expect(0, f"its program is {shutil.which('sh')}\n", args=["--", script])
        script.write_text(f"#!{STATIC}\n", encoding="utf-8")
        self.expect(1, "static program", args=["--", script])

    def test_script_of_a_version_manager(self):
        shims = self.scratch / ".pyenv" / "shims"
        shims.mkdir(parents=True)
        manager = f'[ "$*" = "which snooze" ] && echo {SLEEP}'
        for script, does in ((shims / "snooze", "exit 9"), (self.scratch / "pyenv", manager)):
            script.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
            script.chmod(0o755)
        path = f"{shims}:{self.scratch}:{os.environ['PATH']}"
        self.expect(0, "snooze under", f"its program is {SLEEP}\n", args=["--", "snooze"], PATH=path)

    def test_not_found(self):
        self.expect(1, "was not found", args=["--", "no-such-program-anywhere"])

    def test_library_not_built(self):
        self.expect(1, "there is no", args=["--", "sleep"], HZ_BUILD_DIR=self.folder.name)

    def test_library_that_a_preload_cannot_name(self):
        with tempfile.TemporaryDirectory(prefix="a b") as odd:
            (Path(odd) / library().name).symlink_to(library())
            self.expect(1, "cannot name a path with a space", args=["--", "sleep"], HZ_BUILD_DIR=odd)

    def test_script_without_its_program(self):
        script = self.scratch / "script"
        script.write_text("#!/no/such/program\n", encoding="utf-8")
        script.chmod(0o755)
        self.expect(1, "/no/such/program, which the script names, cannot be executed", args=["--", script])

    def test_not_executable(self):
        self.expect(1, "'/etc/passwd' cannot be executed", args=["--", "/etc/passwd"])

    def test_library_that_cannot_be_loaded(self):
        (self.scratch / library().name).write_bytes(library().read_bytes()[:4096])
        self.expect(1, "would not load it", args=["--", "sleep"], HZ_BUILD_DIR=self.folder.name)


class OfInstallation(Doctor):
    def test_it_says_what_it_cannot_say(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([ROOT / "hz", "doctor"], env=environment(), stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 125)

    def test_in_order(self):
        words = [f"line {line} works: {library(line)}" for line in LINES]
        self.expect(0, "compiler", "kernel", "huge pages", "overcommit", "max_map_count", *words, args=[])

    def test_not_built(self):
        self.expect(1, f"line {DEFAULT} is not built", args=[], HZ_BUILD_DIR=self.folder.name)

    def test_built_but_broken(self):
        (self.scratch / library().name).write_bytes(b"no library")
        self.expect(1, "did not serve", args=[], HZ_BUILD_DIR=self.folder.name)

    def test_address_space_limit_is_shown(self):
        kib = 1 << 30
        command = f"ulimit -v {kib}; exec '{ROOT}/hz' doctor"
        result = subprocess.run(["sh", "-c", command], env=environment(), capture_output=True, text=True, check=False)
        self.assertIn(f"{kib * 1024} bytes", result.stdout)


if __name__ == "__main__":
    unittest.main()
