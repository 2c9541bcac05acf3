# SPDX-License-Identifier: Apache-2.0
"""The program `lane` from outside: every lane in every mode gives a whole record, wrong options are refused, what the
program lists is what doc/lanes.md says, and an allocator's own books agree with the record.

    lane_test.py LANE [LINE=LIBRARY]
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

PROGRAM = sys.argv.pop(1)
LINE, _, LIBRARY = sys.argv.pop(1).partition("=") if len(sys.argv) > 1 and "=" in sys.argv[1] else ("", "", "")
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "doc/lanes.md"
KEYS = {
    "lane", "family", "mode", "threads", "definition", "moments", "touched", "written", "settle_ms", "seed", "ops",
    "seconds", "ops_per_s",
    "rss_peak_kib", "rss_idle_kib", "rss_after_kib", "rss_empty_kib", "harness_kib", "stacks_kib", "ring_high_water", "backlog_kib",
    "sends", "fallbacks", "dirty", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches",
    "cpu_seconds", "allocator", "allocator_file", "flags", "pid",
}
SHORT = {"larson": 100, "mstress": 50, "realloc": 45, "sh6bench": 20, "sh8bench": 20}  # by what the lane's name begins with
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("HZ_")}


def start(*options, **env):
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True, check=False, env=ENVIRONMENT | env)


def listed():
    return {lane["lane"]: lane for lane in json.loads(start("--list").stdout)}


def length(lane, mode):
    """The key of the definition that --iterations sets, and a value that ends soon; None where there is no such key."""
    keys = ("iterations_upstream",) if mode == "upstream" else ()
    for key in (*keys, "milliseconds", "iterations"):
        if key in lane["definition"]:
            return key, SHORT.get(lane["lane"].partition("_")[0], 2000)
    return None


class LaneTest(unittest.TestCase):
    def record(self, lane, *options, threads=2, **env):
        done = start("--lane", lane, *(("--threads", str(threads)) if threads else ()), *options, **env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        return json.loads(done.stdout)


class EveryLane(LaneTest):
    def test_short_run(self):
        runs = [(lane, mode) for lane in listed().values() for mode in lane["modes"]]
        self.assertGreater(len(runs), 50)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # runs mostly sleep
            for lane, mode, record in pool.map(lambda run: (*run, self.short_run(*run)), runs):
                with self.subTest(lane=lane["lane"], mode=mode):
                    self.check(lane, mode, record)

    def short_run(self, lane, mode):
        short = ("--iterations", str(length(lane, mode)[1])) if length(lane, mode) else ()
        return self.record(lane["lane"], "--mode", mode, *short, threads=lane["threads"] or 2)

    def check(self, lane, mode, r):
        self.assertEqual(set(r) - {"rss_series_kib", "latency_ns"}, KEYS)
        self.assertEqual((r["lane"], r["family"], r["mode"]), (lane["lane"], lane["family"], mode))
        self.assertEqual(r["threads"], lane["threads"] or 2)
        definition = dict(lane["definition"])
        if length(lane, mode):
            key, value = length(lane, mode)
            definition[key] = value
        self.assertEqual(r["definition"], definition)
        self.assertEqual(r["moments"], ["empty", "start", "end", "idle", "after"])
        self.assertGreater(r["ops"], 0)
        self.assertGreater(r["seconds"], 0)
        self.assertAlmostEqual(r["ops_per_s"], r["ops"] / r["seconds"], delta=r["ops_per_s"] * 1e-3 + 1)
        self.assertGreater(r["rss_empty_kib"], 0)
        self.assertGreaterEqual(r["rss_peak_kib"], max(r["rss_idle_kib"], r["rss_after_kib"]))
        self.assertGreaterEqual(r["rss_idle_kib"], r["rss_empty_kib"] + r["harness_kib"])
        self.assertGreater(r["cpu_seconds"], 0)
        self.assertFalse(r["dirty"])
        if not LIBRARY:
            self.assertRegex(r["allocator_file"], r"/libc\.so")


class Document(LaneTest):
    """doc/lanes.md and `lane --list` say the same."""

    def tables(self):
        """Each row of a table whose first column is `lane`, as {column: cell}."""
        columns = None
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
            if not cells:
                columns = None
            elif columns is None:
                columns = cells
            elif columns[0] == "lane" and not set(line) <= set("|- "):
                yield dict(zip(columns, cells, strict=True))

    def rows(self):
        """One per lane; a cell has one value for all lanes of its row, or one for each."""
        for row in self.tables():
            values = {column: cell.split(", ") for column, cell in row.items()}
            for i, name in enumerate(values["lane"]):
                yield name, {column: cells[i if len(cells) > 1 else 0] for column, cells in values.items()}

    def test_tables(self):
        lanes = listed()
        seen = []
        for name, row in self.rows():
            with self.subTest(name):
                seen.append(name)
                definition = lanes[name]["definition"]
                row.pop("lane")
                low, _, high = row.pop("sizes", "").partition("..")
                if low:
                    self.assertEqual((str(definition["min_size"]), str(definition["max_size"])), (low, high or low))
                if "threads" in row:
                    self.assertEqual(str(lanes[name]["threads"]), row.pop("threads"))
                for column, cell in row.items():
                    key = {"iterations per thread": "iterations", "remote %": "remote_percent"}.get(column, column)
                    self.assertEqual(str(definition[key]), cell.replace(",", ""), key)
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(set(seen), set(lanes))

    def test_every_lane_is_named(self):
        text = DOCUMENT.read_text(encoding="utf-8")
        self.assertEqual([name for name in listed() if not re.search(rf"\b{name}\b", text)], [])

    def test_guard_lanes(self):
        guards = {name for name, lane in listed().items() if lane["guard"]}
        self.assertLessEqual({"guard_r0", "guard_r50", "guard_r90", "guard_local0", "random_mixed_small"}, guards)
        self.assertEqual({name for name in guards if name.startswith("guard_")},
                         {name for name in listed() if name.startswith("guard_")})
        said = re.search(r"^Guard lanes.*$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)[0]
        for name in guards:
            self.assertIn(name, said)


class Ring(LaneTest):
    def test_threads_and_harness_memory(self):
        for mode in "fair", "upstream":
            for threads in 1, 2, 5:
                with self.subTest(mode=mode, threads=threads):
                    r = self.record("guard_r90", "--mode", mode, "--iterations", "5000", threads=threads)
                    self.assertEqual((r["threads"], r["touched"]), (threads, mode == "fair"))
                    self.assertGreater(r["sends"], threads * 1500)
                    # One ring and one array of slots per thread, and some pages.
                    self.assertGreaterEqual(r["harness_kib"], threads * 515)
                    self.assertLessEqual(r["harness_kib"], threads * 516 + 24)
                    self.assertLess(r["rss_after_kib"], r["rss_idle_kib"])

    def test_fair_ops_are_twice_the_blocks_whatever_the_schedule(self):
        short = ("guard_r0", "--iterations", "5000")
        local = self.record(*short, threads=3)
        self.assertEqual(local["ops"] % 2, 0)
        self.assertEqual(local["ops"], self.record(*short, threads=3)["ops"])
        self.assertNotEqual(local["ops"], self.record(*short, "--seed", "5", threads=3)["ops"])

    def test_options_change_the_run(self):
        r = self.record("guard_r0", "--iterations", "5000")
        self.assertEqual(r["settle_ms"], 50)
        start = time.monotonic()
        r = self.record("guard_r0", "--settle", "400", "--iterations", "5000")
        self.assertEqual(r["settle_ms"], 400)
        self.assertGreater(time.monotonic() - start, 0.8)  # idle, and after
        for lane, threads in (("guard_r0", 2), ("fill_drain_small", None)):  # by a crew; on the program's only thread
            start = time.monotonic()
            r = self.record(lane, "--rest", "500", "--iterations", "5000", threads=threads)
            self.assertEqual(r["rest_ms"], 500)
            self.assertGreater(time.monotonic() - start, 0.5)
            self.assertGreaterEqual(r["rss_rested_kib"], r["rss_empty_kib"])
        r = self.record("guard_r0", "--remote", "100", "--untouched", "--iterations", "5000")
        self.assertEqual((r["definition"]["remote_percent"], r["touched"]), (100, False))
        self.assertGreater(r["sends"], 0)
        self.assertFalse(r["written"])
        for lane in "guard_r0", "small_interleaved_r90":
            r = self.record(lane, "--written", "--iterations", "5000")
            self.assertEqual((r["touched"], r["written"]), (True, True))


class Interleaved(LaneTest):
    def test_an_op_is_an_iteration(self):
        for mode in "fair", "upstream":
            r = self.record("main_interleaved_r50", "--mode", mode, "--iterations", "5000", threads=3)
            self.assertEqual(r["ops"], 15_000)
            self.assertTrue(r["touched"])
            self.assertAlmostEqual(r["sends"], 7500, delta=310)  # five deviations
            self.assertGreater(r["ring_high_water"], 0)

    def test_upstream_has_its_own_length(self):
        self.assertEqual(self.record("fixed_8k", "--mode", "upstream")["ops"], 100_000)


class Solo(LaneTest):
    def test_upstream_counts_iterations_and_fair_counts_calls(self):
        for lane, threads in (("random_mixed_small", 1), ("mixed_ws_balanced", 8)):
            with self.subTest(lane):
                r = self.record(lane, "--mode", "upstream", "--iterations", "5000", threads=threads)
                self.assertEqual(r["ops"], 5000 * threads)
                r = self.record(lane, "--iterations", "5000", threads=threads)
                self.assertGreater(r["ops"], 5000 * threads)

    def test_upstream_writes_only_what_the_shape_says(self):
        self.assertFalse(self.record("random_mixed_small", "--mode", "upstream", threads=1)["touched"])
        self.assertTrue(self.record("mixed_ws_larger_sizes", "--mode", "upstream", threads=4)["touched"])


class Series(LaneTest):
    def test_plateau_shows_the_resident_set_of_every_phase(self):
        series = self.record("rss_plateau", threads=1)["rss_series_kib"]
        self.assertEqual([label for label, _ in series],
                         [f"{phase} {i}" for i in range(1, 6) for phase in ("allocated", "freed")])
        for label, kib in series:
            if label.startswith("allocated"):
                self.assertGreater(kib, 64 * 1024)

    def test_larson_ends_by_time_and_shows_the_resident_set_twice_a_second(self):
        r = self.record("larson_hygienic", "--iterations", "1100")
        self.assertGreaterEqual(r["seconds"], 1.1)
        self.assertLess(r["seconds"], 5)  # a busy machine
        times = [int(label.removeprefix("ms ")) for label, _ in r["rss_series_kib"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual([time // 500 > i for i, time in enumerate(times)], [True] * len(times))
        self.assertGreaterEqual(times[0], 500)
        self.assertGreater(r["sends"], 1000)  # at least one table went from thread to thread
        self.assertEqual(r["sends"] % 1000, 0)


class Classic(LaneTest):
    def test_xmalloc_needs_no_second_thread_and_takes_an_odd_one(self):
        per_producer = 2 * 257 * 50
        for threads, producers in ((1, 1), (2, 1), (3, 2), (4, 2)):
            r = self.record("xmalloc_test", "--iterations", "50", threads=threads)
            self.assertEqual(r["ops"], producers * per_producer)
            self.assertEqual(r["sends"], 0 if threads == 1 else r["ops"] // 2)

    def test_cache_scratch_counts_what_the_first_thread_allocated(self):
        short = ("--iterations", "100")
        self.assertEqual(self.record("cache_scratch", *short)["ops"], 2 * 2 * 101)
        self.assertEqual(self.record("cache_thrash", *short)["ops"], 2 * 2 * 100)


class Options(LaneTest):
    def test_latency_is_of_every_call(self):
        r = self.record("latency", "--iterations", "100000")
        times = r["latency_ns"]
        self.assertEqual(times["malloc"]["calls"] + times["free"]["calls"], r["ops"])
        self.assertEqual(times["malloc"]["calls"], times["free"]["calls"])
        self.assertGreater(r["sends"], 0)
        for call in ("malloc", "free"):
            rising = [times[call][name] for name in ("p50", "p99", "p99.9", "p99.99", "longest")]
            self.assertEqual(rising, sorted(rising))
            self.assertGreaterEqual(rising[0], times["clock"] * 0.5)
            self.assertLess(rising[-1], r["seconds"] * 1e9 * 1.1)
            # The sum of the times is at most what all threads had.
            self.assertLess(rising[0] * times[call]["calls"] / 2, r["seconds"] * 2e9 * 1.1)

    def test_wrong_ones_are_refused(self):
        lane = ("--lane", "guard_r0")
        for options in ((), lane, ("--threads", "2"), ("--lane", "nothing", "--threads", "2"), ("--list", "--list"),
                        (*lane, "--threads", "0"), (*lane, "--threads", "2x"), (*lane, "--threads"),
                        (*lane, "--threads", "2", "--mode", "fast"), (*lane, "--threads", "2", "--remote", "101"),
                        (*lane, "--threads", "2", "--unknown", "1"),
                        (*lane, "--threads", "2", "--written", "--untouched"),
                        (*lane, "--threads", "2", "--written", "--mode", "upstream"),
                        ("--lane", "aligned64k", "--threads", "2", "--written")):
            with self.subTest(options=options):
                done = start(*options)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("lane: ", done.stderr)


@unittest.skipUnless(LIBRARY, "no library to preload")
class Preload(LaneTest):
    def test_the_record_names_who_served(self):
        r = self.record("guard_r0", "--iterations", "1000", LD_PRELOAD=LIBRARY)
        self.assertEqual((r["allocator"], r["allocator_file"]), (LINE, LIBRARY))

    def test_a_preload_that_the_loader_ignores_does_not_take_the_name(self):
        done = start("--lane", "guard_r0", "--threads", "1", "--iterations", "1000", LD_PRELOAD=LIBRARY + ".missing")
        self.assertRegex(json.loads(done.stdout)["allocator_file"], r"/libc\.so")

    def test_the_allocators_books_agree(self):
        """The harness allocates nothing: beside the lane's blocks there are what a thread is born with, and stdout."""
        pairs = {"guard_r50": 2, "random_mixed_small": 1, "fill_drain_medium": 1, "aligned64k": 2, "pipe_64": 2,
                 "alloc_test": 2, "xmalloc_test": 2, "sh8bench": 2, "cache_scratch": 2, "redis_synthetic_random": 2}
        short = {"sh8bench": "20", "xmalloc_test": "50"}
        for lane, threads in ({"fixed_8k": 2} | pairs).items():
            with self.subTest(lane):
                done = start("--lane", lane, "--threads", str(threads), "--iterations",
                             short.get(lane, "10000"), LD_PRELOAD=LIBRARY, HZ_STATS="json")
                books, ops = json.loads(done.stderr), json.loads(done.stdout)["ops"]
                allocated = sum(books[f"alloc_{size}"] for size in ("small", "medium", "large"))
                blocks = ops // 2 if lane in pairs else ops + 64 * threads
                self.assertLessEqual(abs(allocated - blocks - (3 if threads == 2 else 1)), 1)


if __name__ == "__main__":
    unittest.main()
