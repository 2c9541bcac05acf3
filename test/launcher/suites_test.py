# SPDX-License-Identifier: Apache-2.0
#
# `hz suites`: what is told of a library that is not ours, and of what it does not understand. No suite is run.
import shutil
import tempfile
import unittest
from pathlib import Path

from launcher import DEFAULT, HELPERS, hz, library


class Suites(unittest.TestCase):
    def expect(self, code, *args, **changes):
        result = hz("suites", *args, **changes)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_library_that_is_not_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(HELPERS / "libhz-own-malloc.so", Path(folder) / library().name)
            self.assertIn(f"is not of line {DEFAULT}", self.expect(1, "glibc", HZ_BUILD_DIR=folder).stderr)

    def test_what_it_does_not_understand(self):
        self.assertIn("sqlite", self.expect(2, "nonsense").stderr.split())
        self.assertIn("--nonsense", self.expect(2, "--nonsense", "glibc").stderr)
        self.assertIn("nonsense", self.expect(2, "--line", "nonsense").stderr)


if __name__ == "__main__":
    unittest.main()
