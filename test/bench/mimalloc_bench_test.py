# SPDX-License-Identifier: Apache-2.0
"""bench/mimalloc-bench.sh against a made-up tree of that project: what its bench.sh is told, and the table that is made of
its results. Arguments: the script and a line whose library is built. Takes half a second."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT, LINE = sys.argv.pop(1), sys.argv.pop(1)
# Notes what it was told, and writes results of two rounds in the form of the real one.
BENCH = r"""#!/bin/bash
for word in "$@"; do case $word in --external=*) cp "${word#*=}" external ;; *) echo "$word" ;; esac; done >told
cat >benchres.csv <<EOF
# benchmark allocator elapsed rss user sys page-faults page-reclaims
cfrac       mine  00:01.50 2048 1.5 0.0 0 1
larsonN     mine  61.250 4096 1.5 0.0 0 1
cfrac       sys   1:02:03.5 1024 1.5 0.0 0 1
cfrac       mine  00.50 3072 1.5 0.0 0 1
cfrac       mine  00:02.50 1024 1.5 0.0 0 1
EOF
"""
TABLE = """
| test | allocator | seconds, median | lowest | highest | peak MiB | runs |
|---|---|---|---|---|---|---|
| cfrac | mine | 1.500 | 0.500 | 2.500 | 2.0 | 3 |
| cfrac | sys | 3723.500 | 3723.500 | 3723.500 | 1.0 | 1 |
| larsonN | mine | 61.250 | 61.250 | 61.250 | 4.0 | 1 |
"""


class MimallocBench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        self.bench = self.tree / "out/bench"
        self.bench.mkdir(parents=True)
        for program, text in (("bench.sh", BENCH), ("out/bench/cfrac", "")):
            (self.tree / program).write_text(text)
            (self.tree / program).chmod(0o755)

    def run_script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def test_what_it_is_told_and_what_comes_of_it(self):
        done = self.run_script("--lines", LINE, "--rounds", "3", self.tree, "sys", "cfrac", "-j=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.bench / "told").read_text().split(), ["-r=3", "sys", "cfrac", "-j=2"])
        name, library = (self.bench / "external").read_text().split()
        self.assertEqual(name, LINE)
        self.assertTrue(pathlib.Path(library).name.startswith(f"libhakozuna-{LINE}.so"), library)
        self.assertEqual(done.stdout, TABLE)

    def test_what_cannot_be_run(self):
        for arguments, told in (
            ([], "which tree"),
            (["--rounds", "0", self.tree, "cfrac"], "--rounds needs a number"),
            (["--lines", "nothing", self.tree, "cfrac"], "there is no line 'nothing'"),
            (["--lines", LINE, "--peers", "nothing", self.tree, "cfrac"], "there is no peer nothing"),
            ([self.bench, "cfrac"], "there is no bench.sh"),
        ):
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 125)
            self.assertIn(told, done.stderr)
        (self.bench / "cfrac").unlink()
        self.assertIn("not built", self.run_script(self.tree, "cfrac").stderr)


unittest.main()
