# SPDX-License-Identifier: Apache-2.0
#
# `hz programs` with the quickest of its programs: the table, and what becomes of a run that is not the same.
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from launcher import DEFAULT, HELPERS, LINES, hz, library


class Programs(unittest.TestCase):
    def setUp(self):
        if not os.access("/usr/bin/time", os.X_OK) and os.environ.get("CI") != "true":
            self.skipTest("GNU time is not installed")
        self.folder = tempfile.TemporaryDirectory()
        self.scratch = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def expect(self, code, *args, **changes):
        result = hz("programs", *args, **changes)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_table(self):
        for line in (LINES[0], LINES[-1]):
            table = self.scratch / f"{line}.md"
            result = self.expect(0, "--line", line, "--pairs", "2", "--markdown", table, "sqlite3")
            row = result.stdout.splitlines()[-1].split()
            self.assertEqual((row[0], row[2], len(row)), ("sqlite3", "same", 9))
            for number in row[3:]:
                self.assertGreater(float(number), 0)
            text = table.read_text(encoding="utf-8")
            self.assertIn(f"| {' | '.join(row)} |", text)
            self.assertIn(f"line {line}: libhakozuna-{line}.so sha256 ", text)
            self.assertIn("2 pairs of runs", text)

    def test_library_that_is_not_ours(self):
        shutil.copy(HELPERS / "libhz-own-malloc.so", self.scratch / library().name)
        result = self.expect(1, "sqlite3", HZ_BUILD_DIR=self.folder.name)
        self.assertEqual(result.stdout.splitlines()[-1].split()[2], "FAILED")
        self.assertIn(f"is not of line {DEFAULT}", result.stderr)

    def test_what_it_does_not_understand(self):
        self.assertIn("perl", self.expect(2, "nonsense").stderr.split())
        self.assertIn("--nonsense", self.expect(2, "--nonsense", "perl").stderr)
        self.assertIn("--pairs", self.expect(2, "--pairs").stderr)
        self.assertIn("--pairs", self.expect(2, "--pairs", "0", "perl").stderr)
        self.assertIn("nonsense", self.expect(2, "--line", "nonsense").stderr)
        self.expect(2, "--nonsense")


if __name__ == "__main__":
    unittest.main()
