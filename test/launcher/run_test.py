# SPDX-License-Identifier: Apache-2.0
#
# `hz run` around a program: exit codes, arguments, environment, statistics; and what hz says about itself.
import json
import signal
import sys
import tempfile
import unittest
from pathlib import Path

from launcher import BUILD, DEFAULT, LINES, ROOT, hz, library

# Allocates, and leaves stderr open to the end, which not every program does.
PROGRAM = [sys.executable, "-c", "print('text')"]


class ExitCodes(unittest.TestCase):
    def expect(self, code, *args, **changes):
        result = hz(*args, **changes)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_those_of_the_program(self):
        for code in (0, 1, 77):
            self.expect(code, "run", "--", "sh", "-c", f"exit {code}")

    def test_signal_of_the_program(self):
        self.expect(-signal.SIGTERM, "run", "--", "sh", "-c", "kill -TERM $$")

    def test_not_found(self):
        self.expect(127, "run", "--", "no-such-program-anywhere")

    def test_not_executable(self):
        self.expect(126, "run", "--", ROOT / "LICENSE")

    def test_unknown_option(self):
        self.assertIn("--nonsense", self.expect(125, "run", "--nonsense", "--", "true").stderr)

    def test_unknown_line_lists_the_lines(self):
        result = self.expect(125, "run", "--line", "nonsense", "--", "true")
        self.assertIn("nonsense", result.stderr)
        for line in LINES:
            self.assertIn(line, result.stderr.split(":")[-1].split())

    def test_line_is_no_pattern(self):
        self.expect(125, "run", "--line", "hz.", "--", "true")

    def test_line_without_a_name(self):
        self.expect(125, "run", "--line")

    def test_nothing_after_dashes(self):
        self.expect(125, "run", "--")

    def test_library_not_built(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn(empty, self.expect(125, "run", "--", "true", HZ_BUILD_DIR=empty).stderr)

    def test_path_that_a_preload_cannot_name(self):
        for character in " :":
            with tempfile.TemporaryDirectory(prefix=f"a{character}b") as odd:
                (Path(odd) / library().name).symlink_to(library())
                self.assertIn("LD_PRELOAD", self.expect(125, "run", "--", "true", HZ_BUILD_DIR=odd).stderr)

    def test_unknown_command(self):
        self.assertIn("usage:", self.expect(125, "nonsense").stderr)
        self.assertIn("usage:", self.expect(125).stderr)

    def test_help_and_version(self):
        help_text = self.expect(0, "help").stdout
        for line in LINES:
            self.assertIn(line, help_text)
        self.assertRegex(self.expect(0, "--version").stdout, r"^hakozuna \d+\.\d+\.\d+\n$")


class PassesOn(unittest.TestCase):
    def test_arguments(self):
        words = ["two words", "", "*", "$HOME", "a\\b", "'", '"', "-x", "--", "new\nline"]
        result = hz("run", "--", sys.executable, "-c", "import sys; print(repr(sys.argv[1:]))", *words)
        self.assertEqual(result.stdout.strip(), repr(words))

    def test_dashes_are_optional(self):
        self.assertEqual(hz("run", "echo", "--stats", "x").stdout, "--stats x\n")

    def test_program_name_with_an_equals_sign(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "a=b"
            program.symlink_to("/bin/echo")
            self.assertEqual(hz("run", "--", program, "x").stdout, "x\n")

    def test_input(self):
        self.assertEqual(hz("run", "--", "cat", stdin="text").stdout, "text")

    def test_existing_preload_stays_first(self):
        first = next(line.split()[-1] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
                    if "/libc.so" in line)
        result = hz("run", "--", sys.executable, "-c", "import os; print(os.environ['LD_PRELOAD'])", LD_PRELOAD=first)
        self.assertEqual(result.stdout, f"{first}:{library()}\n")

    def test_preload_alone(self):
        self.assertEqual(hz("run", "--", "printenv", "LD_PRELOAD").stdout, f"{library()}\n")

    def test_own_settings_do_not_leak(self):
        self.assertEqual(hz("run", "--", "printenv", "HZ_BUILD_DIR").returncode, 1)

    def test_through_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            link = Path(folder) / "hz"
            link.symlink_to(ROOT / "hz")
            self.assertEqual(hz("run", "echo", "x", launcher=link).stdout, "x\n")


class Statistics(unittest.TestCase):
    def test_silent_without(self):
        result = hz("run", "--", *PROGRAM)
        self.assertEqual((result.stdout, result.stderr), ("text\n", ""))

    def test_text(self):
        result = hz("run", "--stats", "--", *PROGRAM)
        self.assertEqual(result.stdout, "text\n")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith(f"hz: stats line={DEFAULT} "), result.stderr)

    def test_json(self):
        result = hz("run", "--stats=json", "--", *PROGRAM)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        told = json.loads(result.stderr)
        self.assertEqual((told["hz"], told["line"]), ("stats", DEFAULT))

    def test_every_line(self):
        for line in LINES:
            for option in (["--line", line], [f"--line={line}"]):
                told = json.loads(hz("run", *option, "--stats=json", "--", *PROGRAM).stderr)
                self.assertEqual(told["line"], line)


class Demonstration(unittest.TestCase):
    program = BUILD / "bench" / "demo" / "hz-demo"

    def setUp(self):
        if not self.program.is_file():
            self.skipTest("built without HZ_BUILD_BENCH")

    def test_refuses_a_wrong_label(self):
        for expected in ("system", "nonsense"):
            result = hz("run", "--", self.program, expected, "0.01")
            self.assertEqual(result.returncode, 3)
            self.assertIn(f"refused: expected {expected}, but malloc is served by {DEFAULT}", result.stderr)
        self.assertEqual(hz("run", "--", self.program, DEFAULT, "0.01").returncode, 0)

    def test_table(self):
        result = hz("run")
        self.assertEqual(result.returncode, 0, result.stderr)
        head, *rows = result.stdout.splitlines()
        self.assertEqual(head.split()[-4:], ["C", "library", DEFAULT, "ratio"])
        self.assertEqual(len(rows), 3, result.stdout)
        for row in rows:
            theirs, ours, ratio = map(float, row.split()[-3:])
            self.assertGreater(theirs, 0)
            self.assertGreater(ours, 0)
            self.assertAlmostEqual(ratio, ours / theirs, delta=0.02 + 0.06 * ratio)


if __name__ == "__main__":
    unittest.main()
