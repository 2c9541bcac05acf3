# SPDX-License-Identifier: Apache-2.0
#
# `hz run` in a fresh copy of the tree: it builds once and says so, builds again when sources change, shows the log when
# the build fails, and installs or names the tools that are missing.
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from launcher import ROOT, hz

PARTS = ["hz", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "package", "src", "include", "bench"]
BUILD_TOOLS = ["cmake", "ninja", "make", "apt-get", "sudo"]
QUICKEST = "hz7"  # to compile
FIRST_USE = f"hz: building libhakozuna-{QUICKEST} (first use)…\n"


class FirstUse(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "tree"
        for part in PARTS:
            target = self.root / part
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, target)
            else:
                shutil.copy(ROOT / part, target)

    def tearDown(self):
        self.folder.cleanup()

    def run_hz(self, *args, **changes):
        return hz("run", *args, launcher=self.root / "hz", HZ_BUILD_DIR=None, **changes)

    def expect(self, stderr, **changes):
        result = self.run_hz("--line", QUICKEST, "--", "true", **changes)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", stderr))

    def path_without(self, *missing):
        """A folder with links to every program on PATH but these."""
        folder = Path(self.folder.name) / "bin"
        folder.mkdir()
        for place in os.environ["PATH"].split(":"):
            for program in sorted(Path(place).iterdir()) if Path(place).is_dir() else []:
                link = folder / program.name
                if program.name not in missing and not link.is_symlink():
                    link.symlink_to(program)
        return folder

    # One test, because each build takes half a minute of a processor.
    def test_installs_builds_once_and_again_when_sources_change_or_the_tree_moves(self):
        self.expect_first_use_without_tools()
        self.expect("")
        os.utime(self.root / "src" / "export" / "direct.cpp")
        self.expect(f"hz: building libhakozuna-{QUICKEST} (sources changed)…\n")
        self.expect("")
        for other in ("bench/results/z", "bench/notes.txt", "src/heap/.heap.hpp.swp", "cmake/line.cmake.orig"):
            (self.root / other).parent.mkdir(exist_ok=True)
            (self.root / other).touch()
        self.expect("")
        moved = self.root.with_name("moved")
        self.root.rename(moved)
        self.root = moved
        os.utime(self.root / "CMakeLists.txt")
        (self.root / "build" / "release" / f"libhakozuna-{QUICKEST}.so").unlink()
        self.expect_first_use_without_ninja()

    def expect_first_use_without_tools(self):
        """They are installed where that can be seen: a script stands in for the system's installer."""
        if not Path("/etc/debian_version").exists():
            return self.expect(FIRST_USE)
        folder = self.path_without(*BUILD_TOOLS)
        calls = Path(self.folder.name) / "calls"
        links = "".join(f"ln -s '{shutil.which(tool)}' '{folder}/{tool}'\n" for tool in ("cmake", "ninja"))
        self.script(folder / "apt-get", f'echo "$@" >>"{calls}"\n[ "$1" = update ] && exit\n{links}')
        self.script(folder / "sudo", '[ "$1" = -n ] && shift\nexec "$@"\n')
        self.expect("hz: installing cmake ninja-build with apt-get\n" + FIRST_USE, PATH=str(folder))
        self.assertEqual(calls.read_text(encoding="utf-8").splitlines(),
                         ["update", "install -y --no-install-recommends cmake ninja-build"])

    def expect_first_use_without_ninja(self):
        """Makefiles will do, where there is make."""
        if shutil.which("make") is None:
            return self.expect(FIRST_USE)
        shutil.rmtree(Path(self.folder.name) / "bin", ignore_errors=True)
        self.expect(FIRST_USE, PATH=str(self.path_without("ninja")))
        self.assertTrue((self.root / "build" / "release" / "Makefile").is_file())

    def test_failing_build_shows_its_log(self):
        with open(self.root / "src" / "base" / "units.hpp", "a", encoding="utf-8") as source:
            source.write("#error planted by a test\n")
        result = self.run_hz("--", "true")
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertIn("planted by a test", result.stderr)
        self.assertIn("hz.log", result.stderr)

    def test_names_what_is_missing(self):
        result = self.run_hz("--", "true", PATH=str(self.path_without(*BUILD_TOOLS)))
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertIn("missing: cmake ninja-build", result.stderr)

    def test_installation_that_fails(self):
        if not Path("/etc/debian_version").exists():
            self.skipTest("not on Debian or Ubuntu")
        folder = self.path_without(*BUILD_TOOLS)
        self.script(folder / "apt-get", "echo no network >&2\nexit 100\n")
        self.script(folder / "sudo", '[ "$1" = -n ] && shift\nexec "$@"\n')
        result = self.run_hz("--", "true", PATH=str(folder))
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertIn("no network", result.stderr)

    @staticmethod
    def script(path, body):
        path.write_text("#!/bin/sh\n" + body, encoding="utf-8")
        path.chmod(0o755)


if __name__ == "__main__":
    unittest.main()
