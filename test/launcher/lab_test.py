# SPDX-License-Identifier: Apache-2.0
#
# The lab's environment in a copy of the tree, with a stand-in for python: made once, made anew when the pinned packages
# change, added to when an extra is asked for, and a failure is said with its log.
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from launcher import ROOT, hz

# What it is asked to do goes to the file `calls`; the environment's own python is a link to it.
PYTHON = """#!/bin/sh
case "$*" in
  -c*version_info*) exit {old} ;;
  -c*) exit 0 ;;
  '- '* | *hakozuna_lab.arguments*) exec {real} "$@" ;;
  '-m venv '*) rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  *' pip '*) [ {pip} = 0 ] || echo no network >&2 ;;
esac
echo "$*" >>"{calls}"
case "$*" in *' pip '*) exit {pip} ;; esac
"""


class Lab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "tree"
        self.calls = Path(folder.name) / "calls"
        self.bin = Path(folder.name) / "bin"
        for path in (self.root / "lab", self.bin):
            path.mkdir(parents=True)
        for name in ("hz", "CMakeLists.txt", "lab/pyproject.toml"):
            shutil.copy(ROOT / name, self.root / name)
        for package in ("lab/hakozuna_lab", "observe/hakozuna_observe"):
            shutil.copytree(ROOT / package, self.root / package, ignore=shutil.ignore_patterns("__pycache__"))
        self.stand_in()

    def stand_in(self, old=0, pip=0):
        python = self.bin / "python3"
        python.write_text(PYTHON.format(old=old, pip=pip, real=sys.executable, calls=self.calls), encoding="utf-8")
        python.chmod(0o755)

    def hz(self, *args):
        self.calls.write_text("", encoding="utf-8")
        result = hz(*args, launcher=self.root / "hz", HZ_BUILD_DIR=None, PATH=f"{self.bin}:/usr/bin:/bin")
        return result, self.calls.read_text(encoding="utf-8").splitlines()

    def requirements(self):
        return (self.root / "build" / "lab-venv.txt").read_text(encoding="utf-8").split()

    def test_made_once(self):
        result, calls = self.hz("lab", "-m", "x", "y z")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertIn("making the lab's python environment", result.stderr)
        self.assertEqual([call.split()[1] for call in calls], ["venv", "pip", "x"])
        self.assertIn("y z", calls[-1])
        again, calls = self.hz("lab", "-m", "x")
        self.assertEqual((again.returncode, again.stderr, calls), (0, "", ["-m x"]))

    def test_anew_when_the_packages_change(self):
        self.hz("lab", "-m", "x")
        with open(self.root / "lab" / "pyproject.toml", "a", encoding="utf-8") as file:
            file.write("# changed\n")
        _, calls = self.hz("lab", "-m", "x")
        self.assertEqual([call.split()[1] for call in calls], ["venv", "pip", "x"])

    def test_help_and_what_is_wrong_need_no_packages(self):
        for code, *words in ((0, "bench", "--help"), (2, "bench", "--nonsense"), (2, "peers", "--build", "nobody")):
            result, calls = self.hz(*words)
            self.assertEqual((result.returncode, calls), (code, []), result.stderr)

    def test_packages_of_the_tests_are_added_when_needed(self):
        _, calls = self.hz("report")
        self.assertEqual([call.split()[1] for call in calls], ["venv", "pip", "hakozuna_lab"])
        self.assertTrue(any(line.startswith("rich==") for line in self.requirements()))
        self.assertFalse(any(line.startswith("pytest==") for line in self.requirements()))
        _, calls = self.hz("lab", "-m", "x")
        self.assertEqual([call.split()[1] for call in calls], ["pip", "x"])
        self.assertTrue(any(line.startswith("pytest==") for line in self.requirements()))

    def test_an_old_python_is_refused(self):
        self.stand_in(old=1)
        result, calls = self.hz("bench")
        self.assertEqual((result.returncode, calls), (125, ["--version"]))
        self.assertIn("needs python 3.11", result.stderr)

    def test_a_failing_installation_shows_its_log_and_is_tried_again(self):
        self.stand_in(pip=1)
        result, _ = self.hz("peers")
        self.assertEqual(result.returncode, 125)
        self.assertIn("no network", result.stderr)
        self.assertIn("lab-venv.log", result.stderr)
        self.stand_in()
        result, calls = self.hz("peers")
        self.assertEqual((result.returncode, calls[-1]), (0, "-m hakozuna_lab peers"))

    def test_debians_peers_are_installed_wherever_build_stands(self):
        asked = self.root / "asked"
        for name, does in (
            ("apt-get", f'echo "$*" >>"{asked}"'),
            ("apt-cache", "echo libjemalloc2; echo libjemalloc-dev; echo libtcmalloc-minimal4"),
            ("dpkg-query", "echo not-installed"),
            ("sudo", '[ "$1" = -n ] && shift; "$@"'),
        ):
            (self.bin / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
            (self.bin / name).chmod(0o755)
        if not Path("/etc/debian_version").exists():
            self.skipTest("no Debian")
        for words in (("peers", "--build"), ("peers", "--build", "jemalloc"), ("peers", "jemalloc", "--build")):
            asked.write_text("", encoding="utf-8")
            _, calls = self.hz(*words)
            self.assertEqual(calls[-1], " ".join(("-m hakozuna_lab", *words)))
            self.assertRegex(asked.read_text(encoding="utf-8"), r"install .*libjemalloc2 libtcmalloc-minimal4\n")
        asked.write_text("", encoding="utf-8")
        self.hz("peers", "jemalloc")
        self.assertEqual(asked.read_text(encoding="utf-8"), "")


if __name__ == "__main__":
    unittest.main()
