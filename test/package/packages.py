# SPDX-License-Identifier: Apache-2.0
"""What the tests of the packages share: a package is built from a copy of the tree, in a folder of its own, and used
there. Called by ctest, which says where the tree is (HZ_TEST_ROOT) and with which compilers. Only line hz7 is built,
which compiles in seconds; with HZ_TEST_LONG=1 (`hz endure`) all lines are."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ["HZ_TEST_ROOT"])
VERSION = re.search(r'#define HZ_VERSION "(.*)"', (ROOT / "include/hakozuna/hakozuna.h").read_text(encoding="utf-8"))[1]
ALL_LINES = re.findall(r"^  (\S+) +\w+ +line/\S+$", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE)
LINES = ALL_LINES if os.environ.get("HZ_TEST_LONG") else ["hz7"]
PYTHON = Path(sys.executable).resolve()  # no script in front of it that has processes of its own
SKIPPED = 77

# Whatever a package is made of.
PARTS = (
    *("hz", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "cmake", "package", "src", "include", "doc"),
    *("lab/hakozuna_lab", "observe"),
    "test/package/consumer.cpp",
    *("debian", "pyproject.toml", "Cargo.toml", "Cargo.lock", "conanfile.py", "Containerfile"),
)


def environment(**changes):
    """Ours, without settings that are meant for other tests or for the lab."""
    others = ("LD_PRELOAD", "PYTHONPATH")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HZ_") and name not in others}
    clean.update({name: str(value) for name, value in changes.items()})
    return clean


def need(*programs):
    """Ends the test as one that is skipped if one of them is absent."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed")
        sys.exit(SKIPPED)


def command(*words, folder=None, expect=0, **changes):
    """Runs it and answers with what it wrote to stdout, or to stderr if it is to fail; when it ends in another way, the
    test fails with all it wrote."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != expect:
        raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}")
    return done.stderr if expect else done.stdout


class PackageTest(unittest.TestCase):
    """Has a scratch folder for all of its cases."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hz-package-")
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = Path(folder.name).resolve()

    @classmethod
    def copy_tree(cls):
        tree = cls.scratch / "tree"
        for part in PARTS:
            (tree / part).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part, tree / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "build")
                )
            elif (ROOT / part).exists():
                shutil.copy(ROOT / part, tree / part)
        return tree
