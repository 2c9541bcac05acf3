# SPDX-License-Identifier: Apache-2.0
"""The lanes built for Windows, run by Wine: every lane in every mode comes to its end under the allocator that is meant,
and gives a whole record, which is what the lab asks of one. How fast that was says nothing: see doc/platforms.md.

    windows_lane_test.py LANE LINE|LIBRARY

LANE is run as it is on Linux. Its calls are served by LINE, or by the malloc of a LIBRARY of the system."""

import concurrent.futures
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import unittest

# Takes LANE from the command line.
from lane_test import ENVIRONMENT, KEYS, PROGRAM, length

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))
from hakozuna_lab import catalogue  # noqa: E402
from hakozuna_lab.runner import lane_arguments  # noqa: E402
from hakozuna_lab.store import Cell  # noqa: E402

SERVED_BY = sys.argv.pop(1)
IS_LINE = not SERVED_BY.endswith(".dll")
# Lanes of which an op is a call of malloc or free, and none a call of realloc.
CALLS = {"guard_r50", "random_mixed_small", "aligned64k", "pipe_64", "alloc_test", "xmalloc_test", "sh8bench",
         "cache_scratch", "redis_synthetic_random", "latency"}


@dataclasses.dataclass(frozen=True)
class Run:
    lanes: catalogue.Catalogue
    cell: Cell
    ended: subprocess.CompletedProcess

    def record(self):
        return json.loads(self.ended.stdout)


def run(lane, mode):
    """The lane, made short: its definition is a shorter one then."""
    options = []
    if key := length(dataclasses.asdict(lane), mode):
        lane = dataclasses.replace(lane, definition=lane.definition | {key[0]: key[1]})
        options = ["--iterations", str(key[1])]
    cell = Cell("lane", lane.lane, lane.threads or 2, mode, settle=5)
    lanes = {lane.lane: lane}
    command = [PROGRAM, *lane_arguments(lanes, cell, None), *options]
    environment = ENVIRONMENT | {"HZ_STATS": "json"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    return Run(lanes, cell, ended)


class Lanes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lanes = catalogue.read(pathlib.Path(PROGRAM))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # runs mostly sleep
            cls.runs = list(pool.map(lambda pair: run(*pair), [(lane, mode) for lane in lanes.values() for mode in lane.modes]))

    def each(self, check):
        for one in self.runs:
            with self.subTest(lane=one.cell.name, mode=one.cell.mode):
                check(one)

    def test_the_document_tells_of_them(self):
        text = (ROOT / "doc/lanes.md").read_text(encoding="utf-8")
        names = {one.cell.name for one in self.runs}
        self.assertEqual([name for name in sorted(names) if name not in text], [])
        self.assertGreater(len(names), 50)
        self.assertLessEqual(CALLS, names)

    def test_records(self):
        self.each(self.check_record)

    def check_record(self, one):
        self.assertEqual(one.ended.returncode, 0, one.ended.stderr)
        record = one.record()
        catalogue.check(one.lanes, one.cell, record)
        self.assertEqual(set(record) - {"rss_series_kib", "latency_ns"}, KEYS | {"committed_kib"})
        self.assertGreater(record["ops"], 0)
        self.assertGreater(record["seconds"], 0)
        self.assertFalse(record["dirty"])
        self.assertGreater(record["rss_empty_kib"], 0)
        self.assertGreater(record["harness_kib"], 0)
        self.assertGreaterEqual(record["rss_idle_kib"], record["rss_empty_kib"] + record["harness_kib"])
        committed = record["committed_kib"]
        self.assertEqual(set(committed), {"peak", "idle", "after", "empty"})
        self.assertGreaterEqual(committed["peak"], committed["after"])
        self.assertGreaterEqual(committed["idle"], committed["empty"] + record["harness_kib"])

    def test_processors_were_at_work(self):
        self.assertGreater(sum(one.record()["cpu_seconds"] for one in self.runs), 0)

    def test_who_served(self):
        file = rf"\\lane-{re.escape(SERVED_BY)}\.exe$" if IS_LINE else rf"(?i)\\{re.escape(SERVED_BY)}$"
        self.each(lambda one: self.assertEqual(one.record()["allocator"], SERVED_BY))
        self.each(lambda one: self.assertRegex(one.record()["allocator_file"], file))

    @unittest.skipUnless(IS_LINE, "the C library keeps no books")
    def test_the_lines_books_agree(self):
        """Nothing calls the direct API but the lane."""
        self.each(self.check_books)

    def check_books(self, one):
        books, record = json.loads(one.ended.stderr), one.record()
        self.assertEqual(books["line"], SERVED_BY)
        allocated, freed = (sum(books[f"{call}_{size}"] for size in ("small", "medium", "large"))
                            for call in ("alloc", "free"))
        self.assertGreater(allocated, 0)
        self.assertEqual(allocated, freed)
        self.assertEqual(books["bytes_live"], 0)
        if one.cell.name in CALLS and one.cell.mode == "fair":
            self.assertEqual(allocated + freed, record["ops"])

    @unittest.skipIf(IS_LINE, "a line keeps books")
    def test_no_line_is_there_to_keep_books(self):
        self.each(lambda one: self.assertEqual(one.ended.stderr, ""))


if __name__ == "__main__":
    unittest.main()
