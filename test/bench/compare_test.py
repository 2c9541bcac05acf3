# SPDX-License-Identifier: Apache-2.0
"""bench/compare.py with made-up records and a made-up program: order of runs, ratios, refusals, probe."""

import contextlib
import importlib.util
import io
import json
import pathlib
import stat
import sys
import tempfile
import unittest
import unittest.mock

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench/compare.py"
spec = importlib.util.spec_from_file_location("compare", SCRIPT)
compare = importlib.util.module_from_spec(spec)
sys.modules["compare"] = compare
spec.loader.exec_module(compare)


def record(mops, dirty=False):
    return {"ops_per_s": mops * 1e6, "dirty": dirty, "rss_peak_kib": 5120, "rss_idle_kib": 3072,
            "rss_after_kib": 1536, "harness_kib": 1024}


class Statistics(unittest.TestCase):
    def test_quartiles(self):
        self.assertEqual(compare.quartiles([1, 2, 3, 4, 5]), [2, 3, 4])
        self.assertEqual(compare.quartiles([7]), [7, 7, 7])

    def test_a_ratio_needs_both_runs_clean(self):
        ours = [record(10), record(20, dirty=True), record(30)]
        theirs = [record(5), record(5), record(10, dirty=True)]
        self.assertEqual(compare.ratios(ours, theirs), [2.0])


class Rows(unittest.TestCase):
    def test_numbers(self):
        row = compare.table_row("guard_r0", 2, "peer", [record(5), record(10)], [record(10), record(30)], False)
        self.assertEqual(row, "| guard_r0 | 2 | peer | 7.50 | 2.500 (2.250..2.750) | 4.0 | 2.0 | 1.5 | 0 |")

    def test_dirty_runs_do_not_count_but_show(self):
        row = compare.table_row("l", 2, "peer", [record(5), record(99, True)], [record(10), record(10)], False)
        self.assertEqual(row, "| l | 2 | peer | 5.00 | 2.000 (2.000..2.000) | 4.0 | 2.0 | 1.5 | 1 of 2 |")
        row = compare.table_row("l", 2, "peer", [record(5, True)], [record(10)], False)
        self.assertEqual(row.count("refused"), 5)


class Order(unittest.TestCase):
    def test_interleaved_and_rotated(self):
        contenders = [compare.Contender(name, None) for name in "abc"]
        ran = []
        records = compare.run_cell(lambda c: ran.append(c.name) or record(1), contenders, 4, lambda r: None)
        self.assertEqual("".join(ran), "abcbcacababc")
        self.assertEqual([r["round"] for r in records["b"]], [0, 1, 2, 3])


# A stand-in for `lane`: says what the environment asks it to say.
FAKE = """#!{python}
import json, os, sys
lane, threads = sys.argv[2], int(sys.argv[4])
print(json.dumps(dict(lane=lane, threads=threads, definition=dict(iterations=1), touched=True, ops_per_s=float(os.environ["FAKE_OPS"]),
                      dirty="FAKE_DIRTY" in os.environ, fallbacks=0, seconds=2, cpu_seconds=1,
                      rss_peak_kib=4096, rss_idle_kib=4096, rss_after_kib=4096, harness_kib=0, flags="none",
                      seen=os.environ.get("HZ_FAKE"),
                      allocator_file=os.environ.get("FAKE_FILE", "{libc}"))))
"""


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.libc = self.folder / "libc.so.6"
        self.libc.write_bytes(b"")
        self.program = self.folder / "lane"
        self.program.write_text(FAKE.format(python=sys.executable, libc=self.libc), encoding="utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.out = self.folder / "out.jsonl"

    def run_compare(self, *extra):
        args = compare.parse_arguments(
            ["--lanes", "guard_r0,main_r0", "--threads", "2", "--pairs", "3", "--a", "mine", "--b", "peer",
             "--env", "mine=FAKE_OPS=4e6", "--env", "peer=FAKE_OPS=2e6", "--program", str(self.program),
             "--out", str(self.out), *extra])
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            compare.compare(args)
        return output.getvalue()

    def test_table_and_records(self):
        output = self.run_compare()
        self.assertIn("| main_r0 | 2 | peer | 2.00 | 2.000 (2.000..2.000) |", output)
        self.assertIn("sha256 e3b0c442", output)
        records = [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(len(records), 12)
        self.assertEqual([r["contender"] for r in records[:4]], ["mine", "peer", "peer", "mine"])

    def test_settings_of_the_shell_do_not_leak(self):
        with unittest.mock.patch.dict("os.environ", {"HZ_FAKE": "leaked"}):
            self.run_compare()
        seen = {json.loads(line)["seen"] for line in self.out.read_text(encoding="utf-8").splitlines()}
        self.assertEqual(seen, {None})

    def test_dirty_is_refused(self):
        self.assertIn("| peer | refused |", self.run_compare("--env", "peer=FAKE_DIRTY=1"))

    def test_wrong_allocator_is_an_error(self):
        with self.assertRaisesRegex(compare.CompareError, "malloc came from /elsewhere/libother.so"):
            self.run_compare("--env", "peer=FAKE_FILE=/elsewhere/libother.so")

    def test_misspelled_contenders_are_errors(self):
        for extra, message in ((("--b", "peer"), "same name"), (("--b", "x=/no/such.so"), "no such library"),
                               (("--env", "nobody=A=1"), "nobody=A=1"), (("--env", "peer=A"), "peer=A")):
            with self.subTest(extra), self.assertRaisesRegex(compare.CompareError, message):
                self.run_compare(*extra)

    def test_a_failing_program_is_an_error(self):
        with self.assertRaisesRegex(compare.CompareError, "peer: .* ended with 1"):
            self.run_compare("--env", "peer=FAKE_OPS=banana")


if __name__ == "__main__":
    unittest.main()
