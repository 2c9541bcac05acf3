# SPDX-License-Identifier: Apache-2.0
"""How the tests of a GoogleTest program become tests of ctest (test/support/register.cmake): with a script in the place
of the program, which lists what it is told to and writes down what it is asked to run. Called with ctest."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CTEST = sys.argv.pop(1)
SUPPORT = Path(__file__).resolve().parent.parent / "support"
PROGRAM = """#!/bin/sh
case $1 in
  --gtest_list_tests) cat <<'END'
Plain.
  One
  DISABLED_Two
  Three
DISABLED_Off.
  One
Typed/0.  # TypeParam = hz::Box<1, 2>
  One
All/Valued.
  One/0  # GetParam() = 8
  One/1  # GetParam() = 16
END
  ;;
  *Three*) echo '[==========] Running 0 tests from 0 test suites.' ;;
  *) echo "${1#--gtest_filter=} $LINE" >>"$CALLS" ;;
esac
"""
TESTS = """
set(hz_program "{program}")
set(hz_prefix kind.line)
set(hz_label kind)
set(hz_timeout 60)
set(hz_alone "{alone}")
set(hz_environment "LINE=a line;CALLS={calls}")
include("{support}/register.cmake")
"""


class Register(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program, self.calls = self.folder / "program", self.folder / "calls"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(0o755)

    def ctest(self, *args, alone="", **environment):
        text = TESTS.format(program=self.program, alone=alone, calls=self.calls, support=SUPPORT)
        (self.folder / "CTestTestfile.cmake").write_text(text, encoding="utf-8")
        return subprocess.run([CTEST, *args], cwd=self.folder, env={**os.environ, **environment}, capture_output=True,
                              text=True, check=False)

    def listed(self, **how):
        result = self.ctest("--show-only=json-v1", **how)
        self.assertEqual(result.stderr, "")
        return {test["name"]: test["command"][1] for test in json.loads(result.stdout)["tests"]}

    SUITES = {
        "kind.line.Plain": "--gtest_filter=Plain.*",
        "kind.line.Typed<hz::Box<1, 2>>": "--gtest_filter=Typed/0.*",
        "kind.line.All/Valued": "--gtest_filter=All/Valued.*",
    }
    CASES = {
        "kind.line.Plain.One": "--gtest_filter=Plain.One",
        "kind.line.Plain.Three": "--gtest_filter=Plain.Three",
        "kind.line.Typed.One<hz::Box<1, 2>>": "--gtest_filter=Typed/0.One",
        "kind.line.All/Valued.One/0": "--gtest_filter=All/Valued.One/0",
        "kind.line.All/Valued.One/1": "--gtest_filter=All/Valued.One/1",
    }

    def test_a_suite_is_a_test(self):
        self.assertEqual(self.listed(), self.SUITES)

    def test_each_case_alone(self):
        self.assertEqual(self.listed(alone=".*"), self.CASES)
        self.assertEqual(self.listed(HZ_TEST_ALONE="1"), self.CASES)

    def test_some_alone(self):
        expected = {name: what for name, what in self.SUITES.items() if "Plain" not in name}
        expected |= {name: what for name, what in self.CASES.items() if "Plain" in name}
        self.assertEqual(self.listed(alone="^Plain$"), expected)

    def test_what_runs_and_in_which_environment(self):
        result = self.ctest("-R", "Typed")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(self.calls.read_text(encoding="utf-8"), "Typed/0.* a line\n")

    def test_a_run_of_nothing_fails(self):
        result = self.ctest("-R", "Three", alone=".*")
        self.assertNotEqual(result.returncode, 0, result.stdout)

    def test_a_program_that_was_not_built_fails(self):
        self.program.unlink()
        result = self.ctest()
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn("kind.line_NOT_BUILT", result.stdout)

    def test_a_program_that_cannot_list_fails(self):
        self.program.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        result = self.ctest()
        self.assertIn("--gtest_list_tests: 3", result.stderr)
        self.assertNotEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
