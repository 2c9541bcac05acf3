# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: dpkg-buildpackage makes them, lintian has nothing to say, and what is unpacked compiles a
program, serves it, and has a launcher that needs no source tree. Called by ctest; 20 seconds for line hz7."""

import json
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

from packages import LINES, PYTHON, ROOT, SKIPPED, VERSION, PackageTest, command, environment, need

NAMES = ["hakozuna-tools", "libhakozuna-dev", "libhakozuna0", "libhakozuna0-dbgsym"]


class Deb(PackageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tree = cls.copy_tree()
        command("dpkg-buildpackage", "-b", "-us", "-uc", folder=tree, HZ_LINES_ENABLED=";".join(LINES))
        cls.root = cls.scratch / "root"
        cls.packages = {path.name.split("_")[0]: path for path in cls.scratch.glob("*.deb")}
        for path in cls.packages.values():
            command("dpkg-deb", "-x", path, cls.root)
        cls.triplet = command("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        cls.libraries = cls.root / "usr/lib" / cls.triplet
        cls.hz = cls.root / "usr/bin/hz"

    def field(self, package, name):
        return command("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_names_and_versions(self):
        self.assertEqual(sorted(self.packages), NAMES)
        for package in NAMES:
            self.assertEqual(self.field(package, "Version"), VERSION)
        for package in ("hakozuna-tools", "libhakozuna-dev"):
            self.assertIn(f"libhakozuna0 (= {VERSION})", self.field(package, "Depends"))
        self.assertRegex(self.field("libhakozuna0", "Depends"), r"^libc6 \(>= [0-9.]+\)$")

    def test_the_package_is_called_as_the_interface(self):
        for line in LINES:
            names = command("readelf", "-d", self.libraries / f"libhakozuna-{line}.so")
            self.assertIn(f"[libhakozuna-{line}.so.0]", names)

    def test_lintian_has_nothing_to_say(self):
        changes = next(self.scratch.glob("*.changes"))
        told = command("lintian", "--allow-root", "--display-info", "--fail-on", "error,warning,info", changes)
        self.assertEqual(told, "")

    def test_symbols(self):
        symbols = command("dpkg-deb", "-I", self.packages["libhakozuna0"], "symbols")
        for line in LINES:
            self.assertIn(f"libhakozuna-{line}.so.0 libhakozuna0 #MINVER#\n", symbols)
        libraries = len(LINES) + LINES.count("hakozuna")  # with which the one with jemalloc's functions is built
        self.assertEqual(len(re.findall(r" malloc@Base \S+\n", symbols)), libraries)

    def test_debug_symbols_belong_to_the_libraries(self):
        for line in LINES:
            library = self.libraries / f"libhakozuna-{line}.so.0"
            mark = re.search(r"Build ID: (\w+)", command("readelf", "-n", library))[1]
            debug = self.root / "usr/lib/debug/.build-id" / mark[:2] / f"{mark[2:]}.debug"
            self.assertIn(".debug_info", command("readelf", "-SW", debug))
            self.assertNotIn(".debug_info", command("readelf", "-SW", library))

    def test_where_things_lie(self):
        for name in (
            "man/man1/hz.1.gz",
            "man/man3/hakozuna.3.gz",
            "bash-completion/completions/hz",
            "zsh/vendor-completions/_hz",
            "fish/vendor_completions.d/hz.fish",
            "hakozuna/hakozuna-gdb.py",
        ):
            self.assertGreater((self.root / "usr/share" / name).stat().st_size, 0)

    def test_a_program_is_compiled_and_served(self):
        flags = command("pkg-config", "--cflags", "--libs", "hakozuna", PKG_CONFIG_PATH=self.libraries / "pkgconfig")
        program = self.scratch / "consumer"
        command("c++", "-std=c++20", ROOT / "test/package/consumer.cpp", *flags.split(), "-o", program)
        command(program, LINES[0], "drop-in", LD_LIBRARY_PATH=self.libraries)
        self.assertIn(f"[libhakozuna-{LINES[0]}.so.0]", command("readelf", "-d", program))

    def test_cmake_finds_it(self):
        build = self.scratch / "found"
        command(
            "cmake",
            "-G",
            "Ninja",
            "-S",
            ROOT / "test/package/find_package",
            "-B",
            build,
            f"-DHZ_STAGE={self.root}/usr",
            f"-DHZ_TARGETS={LINES[0]}-direct",
        )
        command("cmake", "--build", build)
        command(build / f"consumer-{LINES[0]}-direct", LINES[0], "beside")

    def test_hz_runs_a_program(self):
        for options, line in (([], LINES[0]), (["--line", LINES[-1]], LINES[-1])):
            file = self.scratch / f"stats-{len(options)}"
            told = command(
                self.hz, "run", *options, "--stats=json", "--stats-file", file, "--", PYTHON, "-c", "print('text')"
            )
            self.assertEqual(told, "text\n")
            stats = json.loads(file.read_text(encoding="utf-8"))
            self.assertEqual((stats["line"], stats["version"], stats["program"]), (line, VERSION, PYTHON.name))
            self.assertGreater(stats["alloc_small"], 0)

    def test_hz_doctor(self):
        told = command(self.hz, "doctor")
        self.assertTrue(told.startswith(f"hakozuna {VERSION} in {self.root}/usr/bin\n"), told)
        self.assertNotIn("needed to build", told)
        for line in LINES:
            library = self.libraries / f"libhakozuna-{line}.so.0"
            self.assertIn(f"line {line} works: {library}\n", told)
            self.assertIn(f"{library} (line {line})", command(self.hz, "doctor", "--line", line, "--", "sleep"))

    def test_hz_looks_into_a_process(self):
        with subprocess.Popen([self.hz, "run", "sleep", "60"], env=environment()) as sleeper:
            try:
                deadline = time.monotonic() + 20
                while Path(f"/proc/{sleeper.pid}/comm").read_text(encoding="utf-8") != "sleep\n":
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
                self.assertIn(f"line {LINES[0]}", command(self.hz, "stat", sleeper.pid))
            finally:
                sleeper.kill()

    def test_hz_measures_a_program(self):
        """What it needs of Debian beside python3 it names."""
        there = (
            subprocess.run(["python3", "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        )
        program = [PYTHON, "-c", "kept = [bytes(1000) for _ in range(20000)]"]
        out = self.scratch / "python.hzprofile"
        for words, told in (
            (["run", "--measure", "--pairs", "1"], "calls the malloc of"),
            (["tune", "--pairs", "1", "--out", out], f"profile of {PYTHON.name}, {out}"),
        ):
            if words[0] == "tune" and LINES[0] == "hz7":
                continue  # it learns nothing
            said = command(self.hz, *words, "--", *program, expect=0 if there else 125, PYTHONMALLOC="malloc")
            self.assertIn(told if there else "needs numpy for python3", said)

    def test_hz_says_what_is_not_there(self):
        away = self.libraries / f"libhakozuna-{LINES[-1]}.so.0"
        away.rename(self.scratch / "away")
        try:
            self.assertIn(f"there is no {away}", command(self.hz, "run", "--line", LINES[-1], "true", expect=125))
            command(self.hz, "doctor", expect=1)
            command(self.hz, "doctor", "--line", LINES[-1], "--", "sleep", expect=1)
        finally:
            (self.scratch / "away").rename(away)

    def test_hz_says_what_needs_the_source_tree(self):
        for words in (
            ["run"],
            ["test"],
            ["endure"],
            ["coverage"],
            ["programs"],
            ["bench"],
            ["ab"],
            ["scale"],
            ["report"],
            ["peers"],
            ["lab"],
            ["test", "--help"],
        ):
            told = command(self.hz, *words, expect=125)
            self.assertIn(" needs the source tree, ", told)
            self.assertEqual(told.count("\n"), 1)
        self.assertIn("the rest needs the source tree", command(self.hz, "help"))
        self.assertEqual(command(self.hz, "--version"), f"hakozuna {VERSION}\n")


if __name__ == "__main__":
    need("dpkg-buildpackage", "dh", "lintian", "ninja", "pkg-config", "readelf")
    if subprocess.run(["dpkg-checkbuilddeps", ROOT / "debian/control"], check=False).returncode != 0:
        print("skipped: not all of debian/control's Build-Depends are installed as packages")
        sys.exit(SKIPPED)
    unittest.main()
