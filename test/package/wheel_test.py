# SPDX-License-Identifier: Apache-2.0
"""The Python wheel: built from a source distribution of the tree, tagged by auditwheel, installed into a fresh virtual
environment without network, and used there. Called by ctest with the lab's python, which has the build backend and
auditwheel; 15 seconds for line hz7."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from packages import LINES, PYTHON, VERSION, PackageTest, command, environment, need

TOOLS = Path(sys.executable).parent
# The oldest C library whose symbols we ask for is 2.34 (pthread_create moved there).
TAGS = ("manylinux_2_34_x86_64", "manylinux_2_34_aarch64")


class Wheel(PackageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tree = cls.copy_tree()
        backend = "import scikit_build_core.build as backend, sys; print(backend.build_sdist(sys.argv[1]))"
        command(sys.executable, "-c", backend, cls.scratch, folder=tree)
        cls.sdist = cls.scratch / f"hakozuna-{VERSION}.tar.gz"
        path = f"{TOOLS}:{os.environ['PATH']}"
        command(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-build-isolation",
            "--no-deps",
            "--no-index",
            "-w",
            cls.scratch,
            cls.sdist,
            PATH=path,
            HZ_LINES_ENABLED=";".join(LINES),
        )
        made = next(cls.scratch.glob("*.whl"))
        command(TOOLS / "auditwheel", "repair", "--wheel-dir", cls.scratch / "repaired", made, PATH=path)
        cls.wheel = next((cls.scratch / "repaired").glob("*.whl"))
        command(PYTHON, "-m", "venv", "--without-pip", cls.scratch / "venv")
        cls.bin = cls.scratch / "venv/bin"
        command(sys.executable, "-m", "pip", "--python", cls.bin / "python", "install", "--no-index", cls.wheel)
        cls.program = cls.scratch / "program.py"
        cls.program.write_text("import sys\nprint(sys.argv[1:], bytearray(100_000)[:1])\n", encoding="utf-8")

    def test_every_glibc_since_2_34_will_do(self):
        self.assertIn(self.wheel.name, [f"hakozuna-{VERSION}-py3-none-{tag}.whl" for tag in TAGS])

    def test_run(self):
        file = self.scratch / "stats"
        told = command(
            self.bin / "hakozuna",
            "run",
            "--line",
            LINES[-1],
            "--stats=json",
            "--stats-file",
            file,
            "--",
            PYTHON,
            self.program,
            "a",
            "b c",
        )
        self.assertEqual(told, "['a', 'b c'] bytearray(b'\\x00')\n")
        stats = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual((stats["line"], stats["version"], stats["program"]), (LINES[-1], VERSION, PYTHON.name))
        self.assertGreater(stats["alloc_large"], 0)

    def test_module(self):
        for words in (["-m", "hakozuna", self.program], ["-m", "hakozuna", "-W", "error", self.program]):
            done = subprocess.run(
                [str(word) for word in (self.bin / "python", *words, "--x")],
                env=environment(HZ_STATS=1),
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertEqual(done.stdout, "['--x'] bytearray(b'\\x00')\n")
            self.assertRegex(done.stderr, rf"\Ahz: stats line={LINES[0]} version={VERSION} .* program=python[^\n]*\n\Z")

    def test_without_us_there_are_no_statistics(self):
        done = subprocess.run(
            [str(self.bin / "python"), str(self.program)],
            env=environment(HZ_STATS=1),
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(done.stderr, "")

    def test_library_path(self):
        script = "import hakozuna, sys; print(hakozuna.library_path(*sys.argv[1:]))"
        self.assertEqual(
            command(self.bin / "python", "-c", script), command(self.bin / "python", "-c", script, LINES[0])
        )
        for line in LINES:
            path = command(self.bin / "python", "-c", script, line).strip()
            maps = command("cat", "/proc/self/maps", LD_PRELOAD=path)
            self.assertIn(path, maps)
        self.assertIn(
            f"the lines are: {' '.join(LINES)}", command(self.bin / "python", "-c", script, "nonsense", expect=1)
        )

    def test_the_launcher_is_all_there(self):
        self.assertIn(f"line {LINES[0]} works: ", command(self.bin / "hakozuna", "doctor"))
        self.assertIn("needs the source tree", command(self.bin / "hakozuna", "test", expect=125))
        self.assertIn("usage: hz stat", command(self.bin / "hakozuna", "stat", "--help"))

    def test_typed(self):
        user = self.scratch / "user.py"
        user.write_text(
            "import hakozuna\npath: str = hakozuna.library_path('hz7')\nnone: int = hakozuna.lines()\n",
            encoding="utf-8",
        )
        told = subprocess.run(
            [
                str(TOOLS / "mypy"),
                "--strict",
                "--cache-dir",
                str(self.scratch / "mypy"),
                "--python-executable",
                str(self.bin / "python"),
                str(user),
            ],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        self.assertIn("user.py:3: error", told)
        self.assertIn("Found 1 error", told)


if __name__ == "__main__":
    need("cmake", "ninja")
    unittest.main()
