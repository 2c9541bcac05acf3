# SPDX-License-Identifier: Apache-2.0
"""`hz test`, `hz coverage`, `hz programs`, `hz suites` and `hz endure`: what is built and run, and where the time
went. `hz` starts them with the system's python, and they use nothing but its library, so that no test waits for
packages.

Each check is a step with a name; a step that fails does not keep the next from running, and the last lines name what
failed. What is built goes to build/<preset>, what the compilers say to build/<preset>.log."""

import argparse
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from hakozuna_lab import coverage as reach
from hakozuna_lab import matrix
from hakozuna_lab.arguments import Parser, duration, misuse, number, writable
from hakozuna_lab.paths import ROOT
from hakozuna_lab.suites import SUITES

BUILDS = ROOT / "build"
LOG = BUILDS / "hz.log"
CORES = len(os.sched_getaffinity(0))
SLOWEST = 10
WORDS = 12  # lines of a failed test that the summary repeats
LONG_ENOUGH = 600  # seconds of a whole run whose parts are compared


def lines() -> list[str]:
    return os.environ.get("HZ_LAB_LINES", "").split()


@dataclass(frozen=True)
class Lane:
    """One preset and how it is got ready; what of the tests it has is said by test/matrix.toml."""

    preset: str
    fuzz_seconds: int = 0  # for which libFuzzer looks for more than the corpora have, by each target; clang's alone
    emulates: str = ""  # the processor that it is built for, if not this one
    prepares: str = ""  # what the launcher gets ready before; it says what is in the way
    environment: tuple[tuple[str, str], ...] = ()
    cells: tuple[matrix.Cell, ...] = ()
    brief: tuple[str, ...] = ()  # lines of which what repeats itself does so as seldom as in `hz test`
    leaves_out: Callable[[str], bool] | None = None  # tests that are built and not run

    def options(self) -> list[str]:
        of_cells = {cell.line for cell in self.cells}
        built = [line for number, line in enumerate(lines()) if line in of_cells or number == 0]
        return [
            "-DHZ_BUILD_TESTS=ON",
            "-DHZ_WERROR=ON",
            f"-DHZ_TEST_CELLS={';'.join(map(str, self.cells))}",
            f"-DHZ_TEST_BRIEF_LINES={';'.join(self.brief)}",
            f"-DHZ_LINES_ENABLED={';'.join(built)}",
            f"-DHZ_FUZZ_SECONDS={self.fuzz_seconds}",
            f"-DHZ_JEMALLOC={'ON' if self.looks_at_jemalloc() else 'OFF'}",
        ]

    def looks_at_jemalloc(self) -> bool:
        """Its library takes five seconds of a processor to build, in vain where no test looks at it."""
        return any(cell.part in ("jemalloc", "package") for cell in self.cells)


FULL = (
    Lane("release"),
    Lane("release-clang", fuzz_seconds=30),
    Lane("arm64", emulates="aarch64", environment=(("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu"),)),
    Lane("windows", emulates="windows"),
    Lane("musl", prepares="musl", environment=(("HZ_TEST_TIER", "quick"),)),
    Lane("debug"),
    Lane("asan"),
    Lane("tsan"),
)


def for_run(lane: Lane, run: matrix.Run, daily: bool = False) -> Lane:
    """What of the table the lane has in such a run."""
    table = matrix.read()
    column = matrix.DAILY if daily else lane.preset
    return replace(
        lane,
        cells=tuple(table.cells(column, run)),
        brief=table.brief.get(column, ()),
        leaves_out=None if run.everything else partial(table.leaves_out, column, run=run),
    )


# The runtime that counts opens and maps a file before the heap's first use, and these tests are about each call of the
# system until then, or each page; counting takes time, and these are about how fast it goes. The explorer compiles what
# it runs for itself: it would count as what it stands for.
DISTURBED = "|".join((
    r"^life\.[^.]+\.preload\.(Restrictions\.TheStart|Accounting\.ASmallProcessIsChargedLittle)$",
    r"^fault\.[^.]+\.failing_calls\.PointsFromTheStart\.",
    r"AThreadThatCrossesOftenMayCacheMore",
    r"^model\.(explorer|mutants)",
))  # fmt: skip
# What is counted for `hz coverage`: all that is of the heap and cheap, and the one that asks the thread of control.
# Real programs, packages and what looks at the libraries' machine code show no line that these do not.
COVERED = (
    *("contract", "death", "fault", "fuzz", "guarded", "heap_profile", "hostile", "jemalloc", "life", "model"),
    *("observe", "returns", "stress", "surface", "unit"),
)
CONTROLLED = "observe.ctl"


@dataclass
class Ledger:
    """What was done, how it ended, and how long it took."""

    steps: list[tuple[str, bool, float, list[str]]] = field(default_factory=list)

    def do(self, name: str, work: Callable[[], list[str] | None]) -> bool:
        """`work` answers with the names of what failed, or None."""
        print(f"\n=== {name}", flush=True)
        began = time.monotonic()
        failed = work()
        self.steps.append((name, failed is None, time.monotonic() - began, failed or []))
        return failed is None

    def skip(self, name: str, reason: str) -> None:
        print(f"\n=== {name}\nskipped: {reason}", flush=True)
        self.steps.append((f"{name}, skipped: {reason}", True, 0.0, []))

    def close(self) -> int:
        print("\n=== summary")
        for name, passed, seconds, failed in self.steps:
            print(f"{name:<24} {'passed' if passed else 'FAILED'} {seconds:6.0f} s")
            for test in failed:
                print(f"    {test}")
        print(f"{'together':<24}        {sum(step[2] for step in self.steps):6.0f} s", flush=True)
        return 0 if all(step[1] for step in self.steps) else 1


# Set when the command ends early: nothing more is begun beside the tests.
ending = threading.Event()


def log_of(preset: str) -> Path:
    return BUILDS / f"{preset}.log"


def logged(command: Sequence[str], log: Path) -> bool:
    """Runs it in the tree; what it writes is added to the log."""
    if ending.is_set():
        return False
    with log.open("ab") as file:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False)
    return done.returncode == 0


def show_end(log: Path) -> None:
    print("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-60:]), flush=True)


def aside() -> list[str]:
    """What starts a program that has the processors while nothing else wants them, as far as that may be had."""
    command = ["chrt", "--idle", "0"]
    if shutil.which(command[0]) and subprocess.run([*command, "true"], check=False).returncode == 0:
        return command
    return ["nice", "-n", "19"]


def launcher(*arguments: str) -> str:
    """What `hz` does for us: installs packages, builds a library, makes the lab's environment."""
    done = subprocess.run([str(ROOT / "hz"), "for-checks", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout.strip()


def cached(preset: str, name: str) -> str:
    cache = BUILDS / preset / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.is_file() else ""
    found = re.search(rf"^{name}:[A-Z]*=(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


@contextmanager
def only_builder(preset: str) -> Iterator[None]:
    """Waits while another process builds that preset, by the lock that `provide` in `hz` holds."""
    with (BUILDS / f".{preset}.lock").open("w") as file:
        told = False
        while not ending.is_set():
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    print(f"hz: waiting for another hz that builds {preset}…", file=sys.stderr, flush=True)
                told = True
                ending.wait(0.2)
        yield


def build(lane: Lane, beside_tests: bool = False) -> list[str] | None:
    with only_builder(lane.preset):
        return build_alone(lane, beside_tests)


def build_alone(lane: Lane, beside_tests: bool) -> list[str] | None:
    folder = BUILDS / lane.preset
    log = log_of(lane.preset)
    # A tree that was moved or copied takes a cache along that names the old place.
    home = cached(lane.preset, "CMAKE_HOME_DIRECTORY")
    if home and Path(home) != ROOT:
        shutil.rmtree(BUILDS / lane.preset)
    generator = ["-G", cached(lane.preset, "CMAKE_GENERATOR") or "Ninja"]
    log.write_bytes(b"")
    configure = ["cmake", "--preset", lane.preset, *generator, *lane.options()]
    compile_all = ["cmake", "--build", str(folder), "--parallel", str(CORES)]
    built = logged(configure, log) and logged([*aside(), *compile_all] if beside_tests else compile_all, log)
    return None if built else ["the build"]


@dataclass(frozen=True)
class Case:
    name: str
    label: str
    seconds: float
    state: str  # run, fail, skipped, disabled, or notrun: its program is not there
    output: str


def read_results(file: Path) -> list[Case]:
    """ctest's own account, in JUnit's form."""
    cases = []
    for element in ElementTree.parse(file).getroot().iter("testcase"):
        name = element.get("name", "")
        output = element.findtext("system-out") or ""
        seconds = float(element.get("time", "0"))
        state = element.get("status", "")
        excuse = element.find("skipped")
        # As ctest writes SKIP_RETURN_CODE and SKIP_REGULAR_EXPRESSION, which tests say themselves.
        if excuse is not None and excuse.get("message", "").startswith("SKIP_"):
            state = "skipped"
        cases.append(Case(name, name.split(".")[0], seconds, state, output))
    return cases


def failures(cases: Sequence[Case]) -> list[str]:
    """Tests that failed, each with the cases of GoogleTest that its output names and with its first failures, or else
    with the last it said: of a run of an hour the summary may be all that is kept."""
    failed = []
    for case in cases:
        if case.state in ("run", "disabled", "skipped"):
            continue
        failed.append(case.name)
        inner = re.findall(r"^\[  FAILED  \] (\S+?)(?:,.*)? \(\d+ ms\)$", case.output, re.MULTILINE)
        failed += [f"  {name}" for name in inner]
        wrong = re.findall(r"^\S+:\d+: Failure\n(?:[^\[\n].*\n){1,4}", case.output, re.MULTILINE)
        words = "".join(wrong).splitlines()[:WORDS] or case.output.strip().splitlines()[-WORDS:]
        failed += [f"  | {line}" for line in words]
    return failed


def skipped(cases: Sequence[Case]) -> list[str]:
    """Also inside of tests that ran: a suite is one test, and some of its cases may not apply."""
    names = []
    for case in cases:
        inner = set(re.findall(r"^\[  SKIPPED \] (\S+?)(?:,.*)? \(\d+ ms\)$", case.output, re.MULTILINE))
        names += [f"{case.name} {name}" for name in sorted(inner)] or [case.name] * (case.state == "skipped")
    return names


def tell_times(cases: Sequence[Case]) -> None:
    tests: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        tests[case.label].append(case.seconds)
    print("\nwhere the time went (seconds of all tests together; several run at once)")
    for label, seconds in sorted(tests.items(), key=lambda item: -sum(item[1])):
        print(f"  {label:<10} {len(seconds):5} tests {sum(seconds):8.1f} s, the longest {max(seconds):6.1f} s")
    print(f"the {SLOWEST} slowest")
    for case in sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]:
        print(f"  {case.seconds:8.1f} s {case.name}")
    print(f"skipped, here or in parts: {len(skipped(cases))}", flush=True)


def numbers_of(folder: Path, leaves_out: Callable[[str], bool], environment: dict[str, str]) -> str:
    """The tests that are left, as ctest's -I takes them; "" if none is. Its own -E knows nine groups at most, and runs
    everything where there are more."""
    command = ["ctest", "--test-dir", str(folder), "-N"]
    listed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    tests = re.findall(r"^ *Test +#(\d+): (\S+)", listed.stdout, re.MULTILINE)
    numbers = [number for number, name in tests if not leaves_out(name)]
    return ",".join([numbers[0], numbers[0], "1", *numbers[1:]]) if numbers else ""


def run(lane: Lane, arguments: Sequence[str], quick: bool = False) -> list[str] | None:
    """How many of ctest's processors a test takes stands in test/support/weights.cmake."""
    folder = BUILDS / lane.preset
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(folder), "--output-on-failure", "--no-tests=error"]
    command += ["--parallel", str(6 * CORES), "--output-junit", str(results), "--test-output-size-passed", "1000000"]
    command += ["--no-label-summary", "--test-output-size-failed", "1000000"]
    tier = {"HZ_TEST_TIER": "quick"} if quick or lane.emulates else {}
    environment = {**os.environ, **tier, **dict(lane.environment)}
    if lane.leaves_out:
        numbers = numbers_of(folder, lane.leaves_out, environment)
        if not numbers:
            return ["no test is left"]
        command += ["-I", numbers]
    done = subprocess.run([*command, *arguments], env=environment, stdin=subprocess.DEVNULL, check=False)
    cases = read_results(results) if results.is_file() else []
    tell_times(cases)
    if done.returncode == 0:
        return None
    return failures(cases) or ["ctest"]


@dataclass(frozen=True)
class Built:
    obstacle: str  # why it cannot be on this machine
    failed: list[str] | None
    seconds: float


def make(lane: Lane, beside_tests: bool = False) -> Built:
    began = time.monotonic()
    obstacle = ""
    if lane.emulates:
        native = lane.emulates == platform.machine()
        obstacle = "it is this machine's own processor" if native else launcher("emulate", lane.emulates)
    if lane.prepares and not obstacle:
        obstacle = launcher(lane.prepares)
    failed = None if obstacle else build(lane, beside_tests)
    return Built(obstacle, failed, time.monotonic() - began)


def check_lane(
    ledger: Ledger,
    lane: Lane,
    arguments: Sequence[str],
    quick: bool = False,
    wait: Callable[[], Built] | None = None,
) -> None:
    """`wait` says how its build went, if that was begun elsewhere; the step is as long as it was waited for."""
    name = f"{lane.preset}: build"
    began = time.monotonic()
    print(f"\n=== {name}", flush=True)
    built = wait() if wait else make(lane)
    waited = time.monotonic() - began
    if built.obstacle:
        ledger.skip(lane.preset, built.obstacle)
        return
    print(f"built in {built.seconds:.0f} s", flush=True)
    ledger.steps.append((name, built.failed is None, waited, built.failed or []))
    if built.failed is None:
        ledger.do(f"{lane.preset}: tests", lambda: run(lane, arguments, quick))
    else:
        show_end(log_of(lane.preset))


def sources(*folders: str) -> list[str]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix in (".cpp", ".hpp", ".h", ".c"))


def check_format() -> list[str] | None:
    command = ["clang-format", "--dry-run", "-Werror", *sources("src", "include", "test", "bench")]
    return None if subprocess.run(command, cwd=ROOT, check=False).returncode == 0 else ["clang-format"]


# The last commit before subjects had a form: CONTRIBUTING.md says which.
BEFORE_SUBJECTS = "3ecb4c4cf0da9829045948a27930b27fb41f207b"
SUBJECT = re.compile(r"(?=.{1,72}$)[a-z0-9_./-]+: [a-z].*[^.]")


def check_subjects() -> list[str] | None:
    """A clone without the history, and what is no clone, has none to look at."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%s", f"{BEFORE_SUBJECTS}..HEAD"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return [subject for subject in listed.stdout.splitlines() if not SUBJECT.fullmatch(subject)] or None


# What brings a line's whole heap: looked at for every line. What else there is differs by line in what it calls of
# that, and is looked at once.
HEAP_SOURCE = "src/export/direct.cpp"


def separate(entry: dict[str, str]) -> list[dict[str, str]]:
    """Of what CMake joined for the compiler, the sources."""
    if "/Unity/" not in entry["file"]:
        return [entry]
    joined = Path(entry["directory"], entry["file"])
    sources = re.findall(r'^#include "(.+)"$', joined.read_text(encoding="utf-8"), re.MULTILINE)
    return [{**entry, "file": one, "command": entry["command"].replace(entry["file"], one)} for one in sources]


def tidy_commands(database: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Of the compile commands of src/: each line's heap, and every other file once."""
    chosen: dict[str, dict[str, str]] = {}
    for entry in (part for joined in database for part in separate(joined)):
        file = os.path.relpath(Path(entry["directory"], entry["file"]), ROOT)
        if not file.startswith("src/"):
            continue
        if file == HEAP_SOURCE:
            chosen[entry["command"]] = entry
        else:
            chosen.setdefault(file, entry)
    return list(chosen.values())


def check_tidy() -> list[str] | None:
    preset = "release-clang"
    database = BUILDS / preset / "compile_commands.json"
    if not database.is_file() and build_files(preset) is not None:
        return ["the configuration"]
    commands = tidy_commands(json.loads(database.read_text(encoding="utf-8")))
    waiting = sorted(enumerate(commands), key=lambda item: not item[1]["file"].endswith("direct.cpp"))
    start = [*aside(), "clang-tidy", "--quiet", "-p"]
    running: list[tuple[str, subprocess.Popen[str]]] = []
    failed = []
    while running or (waiting and not ending.is_set()):
        while waiting and len(running) < CORES and not ending.is_set():
            number, entry = waiting.pop(0)
            folder = BUILDS / "tidy" / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")
            process = subprocess.Popen(
                [*start, str(folder), entry["file"]],
                cwd=ROOT,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
            )
            running.append((entry["file"], process))
        file, process = running.pop(0)
        output, _ = process.communicate()
        if process.returncode != 0:
            print(output, flush=True)
            failed.append(os.path.relpath(file, ROOT))
    return sorted(set(failed)) or None


def build_files(preset: str) -> list[str] | None:
    return None if logged(["cmake", "--preset", preset], log_of(preset)) else ["the configuration"]


def names_tests(arguments: Sequence[str]) -> bool:
    """Whether ctest is told which tests to run: then it runs those, whatever tier they are of."""
    return any(re.match(r"-(R|L|I|E|LE)|--(tests|label|rerun)", word) for word in arguments)


def test(everything: bool, run: matrix.Run, arguments: list[str]) -> int:
    ledger = Ledger()
    if not everything:
        ledger.do("installation", lambda: install("test_tools"))
        named = names_tests(arguments)
        lane = for_run(Lane("release"), replace(run, everything=named), daily=not named)
        check_lane(ledger, lane, arguments, quick=not named)
        return ledger.close()
    ledger.do(
        "installation",
        lambda: install("full_test_tools", "sanitizer_runtime", "arm64", "windows", "package_tools", "lab"),
    )
    print(f"turn {run.turn} of {matrix.TURNS}{', everything' * run.everything}")
    # Its packages come while the compilers work; tests of the lab wait for it if they must.
    with subprocess.Popen([str(ROOT / "hz"), "for-checks", "environment"], stdin=subprocess.DEVNULL):
        return check_everything(ledger, [for_run(lane, run) for lane in FULL], arguments)


def check_everything(ledger: Ledger, lanes: Sequence[Lane], arguments: Sequence[str]) -> int:
    """What the next lanes need is compiled while tests run, in what these leave of the processors; tidy looks at the
    sources after that."""
    ledger.do("format", check_format)
    ledger.do("subjects", check_subjects)
    lanes = [lane for lane in lanes if lane.cells]
    worker = ThreadPoolExecutor(max_workers=1)
    try:
        builds = [worker.submit(make, lane, beside_tests=True) for lane in lanes]
        tidy = worker.submit(check_tidy)
        for lane, built in zip(lanes, builds, strict=True):
            check_lane(ledger, lane, arguments, wait=built.result)
        ledger.do("tidy", tidy.result)
        if not arguments:
            ledger.do("shares", lambda: too_long(ledger, matrix.read().share))
    except BaseException:
        ending.set()
        raise
    finally:
        worker.shutdown(cancel_futures=True)
    return ledger.close()


def too_long(ledger: Ledger, share: Mapping[str, int]) -> list[str] | None:
    """The presets that took twice their share, whatever the machine; of a run that is long enough to say."""
    seconds: dict[str, float] = defaultdict(float)
    for name, _, taken, _ in ledger.steps:
        seconds[name.partition(":")[0]] += taken
    whole = sum(seconds.values())
    if whole < LONG_ENOUGH:
        return None
    parts = {name: 100 * seconds[name] / whole for name in share}
    return [
        f"{name}: {parts[name]:.0f} % of the time, not {share[name]}" for name in share if parts[name] > 2 * share[name]
    ] or None


def list_tests(run: matrix.Run) -> None:
    """For each lane, and `daily`, which is of release: its parts, for which lines now and, behind a ~, by turn."""
    print(f"turn {run.turn} of {matrix.TURNS}; seconds of all tests of a kind together, when they ran last")
    table = matrix.read()
    for column in (matrix.DAILY, *table.presets()):
        results = BUILDS / ("release" if column == matrix.DAILY else column) / "results.xml"
        cost: dict[str, float] = defaultdict(float)
        for case in read_results(results) if results.is_file() and column != matrix.DAILY else []:
            cost[case.label] += case.seconds
        now = set(table.cells(column, run))
        print(f"\n{column}")
        shown = set()
        for part in table.parts:
            kind = part.name.partition(".")[0]
            names = ["~" * (matrix.Cell(part.name, line) not in now) + line for line, _ in part.lines.get(column, ())]
            if names:
                seconds = f"{cost[kind]:6.0f} s" if cost[kind] and kind not in shown else " " * 8
                shown.add(kind)
                print(f"{seconds}  {part.name:<18} {' '.join(names)}")


def coverage(chosen: Sequence[str], branches: bool, arguments: list[str]) -> int:
    ledger = Ledger()
    ledger.do("installation", lambda: install("coverage_tools"))
    cover(ledger, chosen, branches, arguments)
    return ledger.close()


def cover(ledger: Ledger, chosen: Sequence[str], branches: bool, arguments: list[str]) -> None:
    table = matrix.read()
    whole = names_tests(arguments)

    def left_out(test: str) -> bool:
        if re.search(DISTURBED, test):
            return True
        return not whole and test != CONTROLLED and table.leaves_out(matrix.DAILY, test, matrix.Run(1))

    cells = tuple(
        cell
        for cell in table.cells("release", matrix.Run(1, everything=True))
        if cell.part.partition(".")[0] in COVERED and cell.line in (matrix.ONCE, *(chosen or lines()))
    )
    lane = Lane("coverage", cells=cells, leaves_out=left_out)
    folder = BUILDS / lane.preset
    counters = folder / "counters"
    if not ledger.do(f"{lane.preset}: build", lambda: build(lane)):
        return
    shutil.rmtree(counters, ignore_errors=True)
    ledger.do(f"{lane.preset}: tests", lambda: run(lane, arguments, quick=True))
    # What a test that failed had reached by then was reached.
    ledger.do(f"{lane.preset}: report", lambda: print(reach.report(folder, counters, branches)))


def install(*kinds: str) -> None:
    launcher("install", *kinds)


def endure() -> int:
    os.environ["HZ_TEST_LONG"] = "1"
    ledger = Ledger()
    ledger.do("installation", lambda: install("test_tools", "programs", "package_tools", "lab", "coverage_tools"))
    everything = matrix.Run(1, everything=True)
    lane = for_run(Lane("release"), everything)
    check_lane(ledger, lane, ["-L", "stress|life|fault|returns|model|pairs|preload|package|observe|lab"])
    seconds = int(os.environ.get("HZ_TEST_SECONDS", "3600"))
    fuzz = Lane("release-clang", cells=(matrix.Cell("fuzz", lines()[0]),), fuzz_seconds=seconds)
    check_lane(ledger, fuzz, ["-L", "fuzz"])
    preload = ROOT / "test" / "preload"
    for line in lines():
        library = str(BUILDS / lane.preset / f"libhakozuna-{line}.so")
        for name, command in (
            ("cpython", [sys.executable, str(preload / "cpython.py"), library, "--whole"]),
            ("stress-ng", ["sh", str(preload / "stress-ng.sh"), library]),
        ):
            ledger.do(f"{line} {name}", lambda c=command, n=line: of_line(c, n))  # type: ignore[misc]
    del os.environ["HZ_TEST_LONG"]
    cover(ledger, [], False, [])
    return ledger.close()


def endure_for(hours: float, line: str, out: str, services: Sequence[str]) -> NoReturn:
    """The lab's: what it needs of packages is more than python's library. It takes this process's place."""
    launcher("install", "program_table")
    launcher("install-if-possible", "services")
    launcher("library", line)
    command = [str(ROOT / "hz"), "for-checks", "lab", "-m", "hakozuna_lab", "endure", "--hours", f"{hours:g}"]
    command += ["--line", line, "--out", out, "--", *services]
    os.execv(command[0], command)


def of_line(command: Sequence[str], line: str) -> list[str] | None:
    done = subprocess.run(command, env={**os.environ, "HZ_TEST_LINE": line}, check=False)
    return None if done.returncode == 0 else [f"exit code {done.returncode}"]


def programs(line: str, pairs: int, markdown: str, names: Sequence[str]) -> int:
    """If no program is named, all that may be had are; the table says which are absent."""
    table = [sys.executable, str(ROOT / "test" / "preload" / "programs.py")]
    if wrong := subprocess.run([*table, *names], check=False).returncode:
        return wrong
    launcher("install", "program_table")
    if not names:
        launcher("install-if-possible", "programs")
    library = launcher("library", line)
    BUILDS.mkdir(exist_ok=True)
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip()
    settings = {"HZ_TEST_LINE": line, "HZ_TEST_CACHE": str(BUILDS / "cache"), "HZ_TEST_COMMIT": commit}
    command = [*table, "--library", library, "--log", str(LOG)]
    command += ["--pairs", str(pairs), "--markdown", markdown, *names]
    return subprocess.run(command, env={**os.environ, **settings}, check=False).returncode


def suites(line: str, markdown: str, names: Sequence[str]) -> int:
    """What a suite is run with is installed where that is possible; the table says what is not to be had."""
    from hakozuna_lab.suites import run as command

    if wrong := [name for name in names if name.partition(":")[0] not in SUITES]:
        misuse("suites", f"there is no suite '{wrong[0]}'; the suites are: {' '.join(SUITES)}")

    launcher("install", "program_table")
    if not names:
        launcher("install-if-possible", "suites")
    return command.main(line, Path(launcher("library", line)), BUILDS, markdown, names)


class ForCtest(argparse.Action):
    """An option of ctest, handed on as it was given."""

    def __call__(
        self, _: argparse.ArgumentParser, given: argparse.Namespace, value: object, option: str | None = None
    ) -> None:
        given.ctest = [*given.ctest, option, *([] if self.nargs == 0 else [value])]


def add_ctest(command: argparse.ArgumentParser) -> None:
    chosen = command.add_argument_group("options of ctest", "which tests, and how; those that are chosen run in full")
    for name in ("-R", "-E", "-L", "-LE", "-I", "-j", "--repeat", "--timeout"):
        chosen.add_argument(name, dest="ctest", action=ForCtest, default=[], metavar="VALUE")
    for name in ("-V", "-VV", "-N", "--output-on-failure", "--rerun-failed", "--stop-on-failure"):
        chosen.add_argument(name, dest="ctest", action=ForCtest, default=[], nargs=0)


def parser() -> Parser:
    top = Parser(prog="hz")
    commands = top.add_subparsers(dest="command", required=True)
    tests = commands.add_parser(
        "test",
        prog="hz test",
        usage="hz test [--all [--everything] [--turn N]] [-R REGEX] [-L LABEL] [OPTIONS...] | hz test --list",
        description="Builds and runs the tests, and says where the time went. Without --all: of the release preset what"
        " finds most in a few minutes. test/matrix.toml says what is run where.",
        epilog="Examples: `hz test -L death`, `hz test -R LineContract`. HZ_TEST_ALONE=1 gives every case of a suite a"
        " process of its own.",
    )
    tests.add_argument("--all", action="store_true", help="every preset, sanitizers, clang-format, clang-tidy")
    tests.add_argument("--everything", action="store_true", help="with --all: also what is run by turn")
    tests.add_argument(
        "--turn", type=int, choices=range(1, matrix.TURNS + 1), help="with --all, in the place of the commit's"
    )
    tests.add_argument("--list", action="store_true", help="what this commit's runs have, and what each kind cost last")
    add_ctest(tests)
    names = lines()
    covered = commands.add_parser(
        "coverage",
        prog="hz coverage",
        usage="hz coverage [--line NAME]... [--branches] [OPTIONS OF CTEST...]",
        description="Which lines and branches of src/ the tests reach: a table by file and by folder, and the lines"
        " that none does, by function; those that doc/coverage.md names stand apart. Needs clang and llvm.",
        epilog="Example: `hz coverage -L unit` says what these reach.",
    )
    covered.add_argument("--line", choices=names, action="append", default=[], metavar="NAME", help="build these (all)")
    covered.add_argument("--branches", action="store_true", help="also branches that always went the same way")
    add_ctest(covered)
    table = commands.add_parser(
        "programs",
        prog="hz programs",
        usage="hz programs [--line NAME] [--pairs N] [--markdown FILE] [PROGRAM...]",
        description="Real programs with and without us: same result? time and peak memory.",
    )
    table.add_argument("--line", choices=names, default=names[0] if names else "", metavar="NAME", help="our line")
    table.add_argument(
        "--pairs", type=number(1, 9999), default=1, metavar="N", help="runs with us and without us each (1)"
    )
    table.add_argument("--markdown", type=writable, metavar="FILE", help="writes the table there, too")
    table.add_words("program", metavar="PROGRAM", help="as in test/preload (all that may be had)")
    others = commands.add_parser(
        "suites",
        prog="hz suites",
        usage="hz suites [--line NAME] [--markdown FILE] [SUITE[:PART,...]...]",
        description="Other people's test suites with and without us: what passes, fails and is skipped, and which tests"
        " differ. Their sources are fetched into build/cache. Minutes to hours.",
        epilog="PART is what the suite itself can be told to run alone: a module of CPython, a unit of Redis, a file of"
        " SQLite, a program of glibc, jemalloc and mimalloc, a package of Go.",
    )
    others.add_argument("--line", choices=names, default=names[0] if names else "", metavar="NAME", help="our line")
    others.add_argument("--markdown", type=writable, metavar="FILE", help="writes the table there, too")
    others.add_words("suite", metavar="SUITE", help=f"of {', '.join(SUITES)} (all that may be had)")
    endures = commands.add_parser(
        "endure",
        prog="hz endure",
        usage="hz endure [--hours N [--line NAME] [--out DIR] [SERVICE...]]",
        description="The long runs, an hour and more: long stress tests, CPython's whole regression suite, stress-ng;"
        " and the packages with all lines. With --hours: services under load for so long, trouble thrown at them, and"
        " whether their memory drifts; a page with pictures.",
        epilog="Services: redis, redis-learn, postgres, nginx, python, python-small; and leak, which has to fail. Exit"
        " code with --hours: 0 none drifts, 1 one does or failed, 2 the run was too short to know. doc/lab.md says how"
        " to read the page.",
    )
    endures.add_argument("--hours", type=duration, metavar="N", help="for how long; 0.05 for a trial")
    endures.add_argument("--line", choices=names, metavar="NAME", help="our line (the default line)")
    endures.add_argument("--out", metavar="DIR", help="folder for the page and the pictures (build/endure)")
    endures.add_words("service", metavar="SERVICE", help="which of them (all but leak)")
    return top


def main() -> int:
    options = parser().parse_args()
    if options.command == "programs":
        return programs(options.line, options.pairs, str(options.markdown or ""), options.program)
    if options.command == "suites":
        return suites(options.line, str(options.markdown or ""), options.suite)
    if options.command == "endure":
        from hakozuna_lab.endurance.services import SERVICES

        given = options.line or options.out or options.service
        if wrong := [name for name in options.service if name not in SERVICES]:
            misuse("endure", f"there is no service '{wrong[0]}'; the services are: {' '.join(SERVICES)}")
        if options.hours:
            line, out = options.line or next(iter(lines()), ""), options.out or str(BUILDS / "endure")
            endure_for(options.hours, line, str(Path(out).absolute()), options.service)
        if given:
            misuse("endure", "--line, --out and services need --hours")
    os.environ.pop("HZ_BUILD_DIR", None)
    if options.command == "test" and (options.everything or options.turn) and not options.all:
        misuse("test", "--everything and --turn need --all")
    if options.command == "test" and options.list and options.ctest:
        misuse("test", "--list takes no option of ctest")
    try:
        BUILDS.mkdir(exist_ok=True)
        if options.command != "test" or not options.list:
            (BUILDS / ".release.lock").touch()
    except OSError as error:
        print(f"hz: error: {BUILDS} cannot be written to: {error.strerror}", file=sys.stderr)
        return 125
    if options.command == "coverage":
        return coverage(options.line, options.branches, options.ctest)
    if options.command == "endure":
        return endure()
    run = matrix.this_run(options.everything)
    run = replace(run, turn=options.turn or run.turn)
    if not options.list:
        return test(options.all, run, options.ctest)
    try:
        list_tests(run)
        sys.stdout.flush()
    except BrokenPipeError:  # `hz test --list | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
