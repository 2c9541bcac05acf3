# SPDX-License-Identifier: Apache-2.0
"""The program `lane` from outside: short runs in every mode give a plausible record; wrong options are refused."""

import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
KEYS = {
    "lane", "family", "mode", "threads", "definition", "moments", "touched", "seed", "ops", "seconds", "ops_per_s",
    "rss_peak_kib", "rss_idle_kib", "rss_after_kib", "rss_empty_kib", "harness_kib", "stacks_kib", "ring_high_water",
    "sends", "fallbacks", "dirty", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches",
    "cpu_seconds", "allocator", "allocator_file", "flags", "pid",
}


def start(*options):
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True, check=False)


class Lane(unittest.TestCase):
    def record(self, *options):
        done = start(*options, "--iterations", "5000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        return json.loads(done.stdout)

    def test_record(self):
        for mode in "fair", "upstream":
            for threads in 1, 2, 5:
                with self.subTest(mode=mode, threads=threads):
                    r = self.record("--lane", "guard_r90", "--threads", str(threads), "--mode", mode)
                    self.assertEqual(set(r), KEYS)
                    self.assertEqual((r["lane"], r["mode"], r["threads"]), ("guard_r90", mode, threads))
                    self.assertEqual(r["touched"], mode == "fair")
                    self.assertGreater(r["sends"], threads * 1500)
                    self.assertGreater(r["seconds"], 0)
                    self.assertAlmostEqual(r["ops_per_s"], r["ops"] / r["seconds"], delta=r["ops_per_s"] * 1e-3)
                    # One ring and one array of slots per thread.
                    self.assertGreaterEqual(r["harness_kib"], threads * 512)
                    self.assertLessEqual(r["harness_kib"], threads * 512 + threads * 8 + 16)
                    self.assertGreaterEqual(r["rss_peak_kib"], r["rss_idle_kib"])
                    self.assertLess(r["rss_after_kib"], r["rss_idle_kib"])
                    self.assertGreater(r["rss_empty_kib"], 0)

    def test_fair_ops_are_twice_the_blocks_whatever_the_schedule(self):
        local = self.record("--lane", "guard_r0", "--threads", "3")
        self.assertEqual(local["ops"] % 2, 0)
        self.assertEqual(local["ops"], self.record("--lane", "guard_r0", "--threads", "3")["ops"])
        self.assertNotEqual(local["ops"], self.record("--lane", "guard_r0", "--threads", "3", "--seed", "5")["ops"])

    def test_options_change_the_run(self):
        r = self.record("--lane", "guard_r0", "--threads", "2", "--remote", "100", "--untouched")
        self.assertEqual((r["definition"]["remote_percent"], r["touched"]), (100, False))
        self.assertGreater(r["sends"], 0)

    def test_wrong_options_are_refused(self):
        lane = ("--lane", "guard_r0")
        for options in ((), lane, ("--threads", "2"), ("--lane", "nothing", "--threads", "2"),
                        (*lane, "--threads", "0"), (*lane, "--threads", "2x"), (*lane, "--threads"),
                        (*lane, "--threads", "2", "--mode", "fast"), (*lane, "--threads", "2", "--remote", "101"),
                        (*lane, "--threads", "2", "--unknown", "1")):
            with self.subTest(options=options):
                done = start(*options)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("lane: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
