# SPDX-License-Identifier: Apache-2.0
"""package/gdb/hakozuna-gdb.py: what `hz heap` and `hz block` say of a program at rest (still.c), which has said itself
what its heap holds and what is wrong with its pointers; of the same in a core file; and what they say where they cannot
answer. CTest names the line. Two seconds for a line: gdb begins slowly, so it is asked all at once."""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(os.environ["HZ_TEST_ROOT"])
BUILD = Path(os.environ["HZ_TEST_BUILD"])
PROGRAM = Path(os.environ["HZ_TEST_PROGRAM"])
LINE = os.environ["HZ_TEST_LINE"]
SCRIPT = ROOT / "package" / "gdb" / "hakozuna-gdb.py"
SKIPPED = 77

ONE_LOCK = LINE == "hz7"
# They see a second free at the free itself only where it follows the first.
SEES_LATE = LINE in ("hakozuna", "hz4")
HEAPS = ["hz heap", "hz heap classes", "hz heap threads"]
# hz_check says 0 where a free would find nothing wrong, and n where it would report E0n.
FAULTS = re.compile(r"E0(\d) [a-z-]+, at the free itself")


def states() -> dict[str, str]:
    """What is known of each address, as a regular expression; {main} and {other} are those threads."""
    alive = dict.fromkeys(
        ("live_small[3]", "live_small[3] + 5", "live_medium", "live_large", "live_large + 70000"), "live"
    )
    alive |= dict.fromkeys(("live_huge", "live_huge + 16", "live_huge + 5000000"), "live")
    known = alive | {
        "live_medium + 32768": "never handed out",
        "((unsigned long)live_small[0] & ~0xffffUL) + 36 * 1792": "never handed out",
    }
    if ONE_LOCK:
        free = dict.fromkeys(
            ("freed_before", "freed_last", "freed_there", "remote[0]", "remote[39]"), "free in its span"
        )
        return known | free | {"freed_huge": "where memory of the heap was"}
    known |= dict.fromkeys(("heap_live", "heap_live + 48", "heap_huge", "heap_huge + 16"), "live")
    known |= dict.fromkeys(("heap_live - 16", "heap_live + 1000"), "never handed out")
    known |= {"heap_freed": "free, for the next one of its heap"}
    remote = {
        "hakozuna": "cached by {other}",
        "hz5": "freed by another thread, waiting for the owner",
        "hz8": "free in its span",  # the owner's thread had collected it
    }.get(LINE, "in the outbox of {other}, for owner 0")
    waiting = "free, waiting in the exchange: "
    left = {
        "hakozuna": waiting + "on the shelf of processor",
        "hz3": waiting + "sent to owner 0",
        "hz3-fast": waiting + "sent to owner 0",
        "hz4": waiting + "in the inbox of owner 0",
        "hz5": "freed by another thread, waiting for the owner",
        "hz6": waiting + "on the shelf of processor",
    }.get(LINE)
    return known | {
        "freed_before": "cached by {main}",
        "freed_last": "cached by {main}",
        "freed_last + 16": "cached by {main}",
        "freed_there": "cached by {other}",
        "freed_huge": "in free memory of the arena",
        "remote[0]": remote,
        "remote[39]": remote,
        **({"left_behind[5]": left} if left else {}),
        "twice": "in 2 places.*: cached by {main}, cached by {main}" if SEES_LATE else "live",
    }


@dataclass
class Still:
    """The program, at rest, and what it said."""

    pid: int
    faults: dict[str, int]
    stats: dict[str, str]


@contextmanager
def still(library: Path | None, *words: str, **environment: str) -> Iterator[Still]:
    """Nobody takes caches back meanwhile: there is no purger."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HZ_") and name != "LD_PRELOAD"}
    clean |= {"HZ_BACKGROUND": "0", **environment}
    if library is not None:
        clean["LD_PRELOAD"] = str(library)
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [PROGRAM, *words], env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            assert process.stdout is not None
            faults = {}
            for line in process.stdout:
                if line == "still\n":
                    break
                _, fault, expression = line.rstrip("\n").split(" ", 2)
                faults[expression] = int(fault)
            errors.seek(0)
            yield Still(process.pid, faults, dict(re.findall(r"(\w+)=(\S+)", errors.read())))
        finally:
            process.kill()
            process.communicate()


def gdb(arguments: Sequence[str | Path], commands: Sequence[str]) -> list[str]:
    """What each of the commands prints."""
    mark = "@@@"
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *map(str, arguments), "-ex", "set width 0"]
    words += ["-ex", f"source {SCRIPT}"]
    for command in commands:
        words += ["-ex", f"echo {mark}\\n", "-ex", command]
    words += ["-ex", f"echo {mark}\\n"]  # what gdb says when it leaves is no answer
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100,
    )
    _, *answers, _ = done.stdout.split(f"{mark}\n")
    if "Traceback" in done.stdout or "Python Exception" in done.stdout or len(answers) != len(commands):
        raise AssertionError(done.stdout)
    return answers


def part_of(file: Path, pattern: str) -> str:
    found = re.search(pattern, file.read_text(encoding="utf-8"))
    assert found is not None, f"{pattern} in {file}"
    return found[1]


def numbers(text: str) -> dict[str, int]:
    """The figures that `hz heap` begins with."""
    return {name: int(n.replace(",", "")) for name, n in re.findall(r"^  ([a-z_]+) +([\d,]+)  ", text, re.MULTILINE)}


def by_class(text: str) -> dict[str, dict[str, int]]:
    lines = text[text.index("spans by class\n") :].splitlines()[1:]
    head = lines[0].split()
    rows = [line.replace(",", "").replace(" %", "").split() for line in lines[1:] if not line.startswith("  huge")]
    return {row[0]: dict(zip(head, map(int, row), strict=True)) for row in rows}


def row_of(answer: str, label: str) -> str:
    found = re.search(rf"^  {label} +(.*)$", answer, re.MULTILINE)
    return found[1] if found else ""


def unnumbered(text: str) -> str:
    """gdb numbers threads in a core in another order."""
    return re.sub(r"thread \d+ \(LWP", "thread (LWP", text)


class OfLine(unittest.TestCase):
    """The same is asked of the process and of its core."""

    library: Path
    still: Still
    live: dict[str, str]
    core: dict[str, str]
    main: str
    other: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.library = BUILD / f"libhakozuna-{LINE}.so"
        # What counts operations is another way through the heap.
        twice = ["twice"] if SEES_LATE else []
        counting = {"HZ_STATS": "1"} if LINE == "hz6" else {}
        with tempfile.TemporaryDirectory() as scratch, still(cls.library, *twice, **counting) as cls.still:
            core = Path(scratch) / "core"
            asked = [*HEAPS, *(f"hz block {expression}" for expression in cls.still.faults)]
            threads = ['printf "%d %d", main_thread, other_thread', f"generate-core-file {core}"]
            live = gdb(["-p", str(cls.still.pid)], [*asked, *threads])
            cls.live = dict(zip(asked, live, strict=False))
            cls.main, cls.other = live[-2].split()
            cls.core = dict(zip(asked, gdb([PROGRAM, core], asked), strict=True))

    def test_says_who_serves(self) -> None:
        version = part_of(ROOT / "include/hakozuna/hakozuna.h", r'HZ_VERSION "(.*)"')
        first = f"{LINE} {version} in process {self.still.pid}: {self.library}\n"
        self.assertTrue(self.live["hz heap"].startswith(first), self.live["hz heap"])

    def test_figures_are_those_of_the_statistics(self) -> None:
        for heap in HEAPS:
            figures = numbers(self.live[heap])
            self.assertLessEqual({"bytes_held", "bytes_live", "bytes_cached", "bytes_peak", "threads"}, figures.keys())
            del figures["bytes_waiting"]  # no field there
            self.assertEqual(figures, {name: int(self.still.stats[name]) for name in figures})
            self.assertNotIn("counted span by span", self.live[heap])
            self.assertNotIn("inside of the heap", self.live[heap])

    def test_spans_by_class(self) -> None:
        rows = by_class(self.live["hz heap classes"])
        for size, live in (("320", 0), ("1792", 40), ("2560", 0), ("32768", 1), ("229376", 1)):
            row = rows.get(size, {"live": 0})  # an empty span may have gone
            self.assertEqual(row["live"], live, size)
        for row in rows.values():
            self.assertEqual(row["slots"], row["out"] + row["free"] + row["unused"])
            self.assertEqual(row["out"], row["live"] + row["cached"] + row["waiting"])
        self.assertEqual(rows["1792"]["slots"], 72)
        # A first-class heap's chunk and its block of 100,000 bytes are granules, too.
        huge = 5242880 if ONE_LOCK else 5242880 + 65536 + 131072
        held = sum(row["class"] * row["out"] for row in rows.values()) + huge
        self.assertEqual(held, int(self.still.stats["bytes_held"]))
        self.assertIn(f"huge: {'1 block' if ONE_LOCK else '3 blocks'} of {huge:,} bytes", self.live["hz heap"])

    def test_what_threads_cache(self) -> None:
        told = self.live["hz heap threads"]
        if ONE_LOCK:
            self.assertIn("this line caches nothing for them", told)
            return
        parts = dict(re.findall(r"^  thread \d+ \(LWP (\d+)\): (.*(?:\n    .*)*)", told, re.MULTILINE))
        self.assertEqual(parts.keys(), {self.main, self.other})
        self.assertRegex(parts[self.other], r"    class 2,560: [2-9]")
        cached = sum(int(n.replace(",", "")) for n in re.findall(r"slots?, ([\d,]+) bytes", told))
        waiting = numbers(told)["bytes_waiting"]
        if LINE not in ("hz5", "hz8"):  # where slots wait that are in no list
            self.assertEqual(cached + waiting, int(self.still.stats["bytes_cached"]))

    def test_states(self) -> None:
        threads = {"main": rf"thread \d+ \(LWP {self.main}\)", "other": rf"thread \d+ \(LWP {self.other}\)"}
        for expression, state in states().items():
            answer = self.live[f"hz block {expression}"]
            told = row_of(answer, "state") or row_of(answer, "lies")
            self.assertRegex(told, "^" + state.format(**threads), expression)

    def test_places(self) -> None:
        self.assertRegex(
            row_of(self.live["hz block live_small[3] + 5"], "slot"), r"^0x\w+, number \d+, of 1,792 bytes$"
        )
        self.assertEqual(row_of(self.live["hz block live_small[3] + 5"], "address"), "5 bytes inside")
        self.assertEqual(row_of(self.live["hz block live_small[3]"], "address"), "its start")
        self.assertRegex(row_of(self.live["hz block live_small[3]"], "span"), r" of class 1,792: 36 slots, ")
        self.assertRegex(row_of(self.live["hz block live_large + 70000"], "slot"), r"number 0, of 229,376 bytes$")
        self.assertRegex(row_of(self.live["hz block live_huge + 16"], "block"), r"a huge block of 5,242,880 bytes$")
        self.assertIn("is not of the heap of", self.live["hz block foreign"])
        if not ONE_LOCK:
            told = self.live["hz block heap_live + 48"]
            self.assertRegex(row_of(told, "chunk"), r"^0x\w+ of first-class heap number 1, [\d,]+ of 65,536 bytes")
            self.assertRegex(row_of(told, "block"), r"^0x\w+, of 112 bytes$")
            self.assertEqual(row_of(told, "address"), "48 bytes inside")

    def test_a_free_is_reported_as_the_library_would(self) -> None:
        for expression, fault in self.still.faults.items():
            told = row_of(self.live[f"hz block {expression}"], "a free")
            by = re.search(r"if thread \d+ \(LWP (\d+)\) frees it", told)
            found = FAULTS.match(told)
            at_once = found is not None and (by is None or by[1] == self.main)
            self.assertEqual(int(found[1]) if found is not None and at_once else 0, fault, f"{expression}: {told}")

    def test_a_second_free_that_is_seen_late(self) -> None:
        told = row_of(self.live["hz block freed_before"], "a free")
        late = "E03 double-free, when its slots return to their spans, at the latest when the program exits"
        self.assertEqual(told, late if SEES_LATE else "E03 double-free, at the free itself")

    def test_a_core_says_the_same(self) -> None:
        for question, answer in self.live.items():
            self.assertEqual(unnumbered(self.core[question]), unnumbered(answer), question)


class Trouble(unittest.TestCase):
    """One line, whatever is wrong."""

    def one_line(self, answer: str, pattern: str) -> None:
        self.assertRegex(answer, rf"^hz: {pattern}.*\n$")

    def test_knows_every_line(self) -> None:
        known = part_of(ROOT / "CMakeLists.txt", r"\nset\(HZ_LINES\n((?:  .*\n)*)\)")
        lines = re.findall(r"^  ([a-z0-9-]+) +(\w+) +line/", known, re.MULTILINE)
        self.assertGreater(len(lines), 7)
        for name, structure in lines:
            self.assertIn(f'    "{name}": "{structure}",\n', SCRIPT.read_text(encoding="utf-8"))

    def test_no_process(self) -> None:
        for answer in gdb([PROGRAM], ["hz heap", "hz block 1"]):
            self.one_line(answer, "there is no process and no core file")

    def test_not_ours(self) -> None:
        with still(None) as process:
            for answer in gdb(["-p", str(process.pid)], ["hz heap", "hz block foreign"]):
                self.one_line(answer, "no library of Hakozuna is in this process")

    @unittest.skipIf(shutil.which("strip") is None, "strip is not installed")
    def test_no_debugging_information(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            library = Path(scratch) / f"libhakozuna-{LINE}.so"
            subprocess.run(["strip", "-o", library, BUILD / library.name], check=True)
            with still(library) as process:
                for answer in gdb(["-p", str(process.pid)], ["hz heap", "hz block foreign"]):
                    self.one_line(answer, f"gdb has no debugging information of {library}: ")

    def test_bad_words(self) -> None:
        asked = {
            "hz block": "hz block needs an address",
            "hz block nope": 'nope is no address: No symbol "nope"',
            "hz block no_address": "no_address is no address: it is of type struct",
            "hz block no_address_either": "no_address_either is no address: it is of type double",
            "hz block 1 +": "1 . is no address: ",
            "hz block *(char**)1": ".*is no address: Cannot access memory",
            "hz heap spans": "hz heap spans: there are hz heap, ",
        }
        with still(BUILD / f"libhakozuna-{LINE}.so") as process:
            for answer, pattern in zip(gdb(["-p", str(process.pid)], list(asked)), asked.values(), strict=True):
                self.one_line(answer, pattern)

    @unittest.skipIf(ONE_LOCK, "its notes lie elsewhere")
    def test_a_core_whose_tables_are_damaged_or_in_motion(self) -> None:
        of = part_of(SCRIPT, f'    "{LINE}": "(.*)"')
        looked = (
            f'python g = gdb.lookup_global_symbol("hz::State<hz::{of}>::global").value();'
            ' print(int(g["source"]["book"]["runs"]["rows"]), int(g["source"]["plan"]["base_"]),'
            ' int(g["threads"].address), int(g["threads"]["lock"].address), int(g["threads"]["next"].address),'
            ' int(g["threads"]))'
        )
        with tempfile.TemporaryDirectory() as scratch, still(BUILD / f"libhakozuna-{LINE}.so") as process:
            core = Path(scratch) / "core"
            commands = [looked, "print/d (unsigned long)live_small[0]", f"generate-core-file {core}"]
            answers = gdb(["-p", str(process.pid)], commands)
            rows, base, threads, lock, following, first = map(int, answers[0].split())
            slot = int(answers[1].split()[-1])
            changes = {
                "the run of memory at 0x.* is damaged": (rows + 24 * ((slot - base) >> 16), b"\xff" * 24),
                "the .* bytes at 0xffffffffffff0000 cannot be read: ": (threads, struct.pack("<Q", 0xFFFFFFFFFFFF0000)),
                "the list from 0x.* on is a circle": (following, struct.pack("<Q", first)),
            }
            for pattern, (at, changed) in changes.items():
                with patched(core, at, changed):
                    for answer in gdb([PROGRAM, core], ["hz heap", "hz block live_small[0]"]):
                        self.one_line(answer, pattern)
            with patched(core, lock, b"\1\0\0\0"):
                heap, block = gdb([PROGRAM, core], ["hz heap", "hz block live_small[0]"])
                self.assertRegex(heap, r"\n  thread \d+ \(LWP \d+\): inside of the heap, so figures may be off")
                told = r"cannot tell: live, or in the hands of thread \d+ \(LWP \d+\)" if SEES_LATE else "live"
                self.assertRegex(row_of(block, "state"), f"^{told}$")

    @unittest.skipUnless((BUILD / "libhakozuna-hz7.so").exists(), "hz7 is not built")
    def test_a_core_of_hz7_whose_table_is_damaged(self) -> None:
        looked = (
            'python at = int(gdb.parse_and_eval("(unsigned long)live_small[0]"));'
            ' leaves = gdb.lookup_global_symbol("hz::one_lock::Table::leaves").value();'
            " print(int(leaves[at >> 35]) + (at >> 22 & 8191), at & -(1 << 22))"
        )
        with tempfile.TemporaryDirectory() as scratch, still(BUILD / "libhakozuna-hz7.so") as process:
            core = Path(scratch) / "core"
            answers = gdb(["-p", str(process.pid)], [looked, f"generate-core-file {core}"])
            kind, region = map(int, answers[0].split())
            with patched(core, kind, b"\xff"):
                heap, block = gdb([PROGRAM, core], ["hz heap", "hz block live_small[0]"])
                self.assertNotIn("class", heap)  # nothing is known to lie there
                self.one_line(block, "the table of regions has 255 for 0x.*: it is damaged")
            with patched(core, region + 32, b"\xff" * 2048):
                for answer in gdb([PROGRAM, core], ["hz heap", "hz block live_small[0]"]):
                    self.one_line(answer, "the notes of the span at 0x.* are damaged")


@contextmanager
def patched(core: Path, address: int, changed: bytes) -> Iterator[None]:
    """Other bytes at an address of the process that the core is of."""
    place = place_in(core, address)
    with core.open("r+b") as file:
        file.seek(place)
        before = file.read(len(changed))
        file.seek(place)
        file.write(changed)
    try:
        yield
    finally:
        with core.open("r+b") as file:
            file.seek(place)
            file.write(before)


def place_in(core: Path, address: int) -> int:
    with core.open("rb") as file:
        head = file.read(64)
        offset, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        table = file.read(size * count)
    for at in range(0, len(table), size):
        kind, _, place, begin, _, length = struct.unpack_from("<IIQQQQ", table, at)
        if kind == 1 and begin <= address < begin + length:
            return int(place + address - begin)
    raise AssertionError(f"{address:#x} is not in {core}")


def obstacle() -> str:
    """Why gdb cannot be asked here, if it cannot."""
    if shutil.which("gdb") is None:
        return "gdb is not installed"
    with still(None) as process:
        command = ["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex", "python print(6 * 7)"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in told.stderr.splitlines():
        if re.search("Operation not permitted|Could not attach|write extended state status", line):
            return f"gdb may not attach to a process, or cannot: {line}"
    return "" if "42" in told.stdout else "this gdb was built without Python"


if __name__ == "__main__":
    if reason := obstacle():
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
