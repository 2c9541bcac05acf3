# SPDX-License-Identifier: Apache-2.0
"""Watches a process and its descendants while they run: resident memory over time, the highest sum of their peaks, and
which malloc each of their programs got. For programs and measure. A look costs some 0.1 ms per process, 20 times a
second; what it took of the machine is told as `cpu_seconds`. To ask for a malloc takes files to be read, so a thread of
its own does it, and no sample waits for it."""

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hakozuna_lab import LabError
from hakozuna_lab.proof import ProofError, malloc_file, program_of

INTERVAL = 0.05
# Until a first program is seen: a short one must be caught at work.
FIRST_INTERVAL = 0.002


def tree(pid: int) -> list[int]:
    """A process and its descendants. Those whose parent ended before them belong to no tree any more."""
    found = [pid]
    for member in found:  # grows meanwhile
        with suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{member}/task").iterdir():
                found += map(int, read(thread / "children").split())
    return found


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """The last ones first: what they started is told before those who could start more."""
    for pid in reversed(list(pids)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def read(path: Path) -> str:
    """A file of /proc; empty when its process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def field_kib(text: str, name: str) -> int:
    """The number of a line "Name:   123 kB"; 0 when it is not there, as in processes that have ended."""
    _, found, rest = text.partition(f"\n{name}:")
    return int(rest.split(maxsplit=1)[0]) if found else 0


def rss_kib(pid: int) -> int:
    """Of the whole tree, exactly: the kernel walks the page tables, which the samples below do without."""
    return sum(field_kib(read(Path(f"/proc/{member}/smaps_rollup")), "Rss") for member in tree(pid))


class Watch:
    """`with Watch(pid) as watch:` looks until the block ends. Pages that processes share count for each of them."""

    def __init__(self, pid: int, *, tool: str = "", interval: float = INTERVAL) -> None:
        """Processes that run the program `tool` do not count: it started what is watched."""
        self.peak_kib = 0  # the highest sum, over processes alive together, of each one's highest resident set (VmHWM)
        self.started = time.perf_counter()
        self.series: list[tuple[float, int]] = []  # seconds since then, resident set
        self.served: dict[str, Path] = {}  # program: the file whose malloc it calls
        self.unproven: dict[str, str] = {}  # program: why that cannot be said
        self.programs_kib: dict[str, int] = {}  # program: the largest resident set of one process of it
        self.own_kib: dict[
            int, int
        ] = {}  # process: the most that it had for itself, no file's pages (VmHWM less those)
        self.files_kib: dict[int, int] = {}  # process: pages of files and shared ones, at the last look
        self.cpu_seconds = 0.0
        self._pid = pid
        self._tool = tool
        self._interval = interval
        self._known: set[tuple[int, str]] = set()
        self._failure: BaseException | None = None
        self._spent: list[float] = []  # seconds of each thread
        self._stop = threading.Event()
        self._to_ask: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()  # None: no more
        self._threads = [
            threading.Thread(target=self._timed, args=(work,), name=f"watch: {work.__name__}", daemon=True)
            for work in (self._look_on, self._ask_on)
        ]

    def __enter__(self) -> "Watch":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.cpu_seconds = sum(self._spent)
        if self._failure and not error:
            raise self._failure

    def _timed(self, work: Callable[[], None]) -> None:
        began = time.thread_time()
        try:
            work()
        except Exception as error:
            self._failure = error  # for whoever waits for the numbers
        self._spent.append(time.thread_time() - began)

    def _look_on(self) -> None:
        try:
            while not self._stop.is_set():
                self._look()
                seen = self.served or self.unproven
                self._stop.wait(self._interval if seen else FIRST_INTERVAL)
            self._look()
        finally:
            self._to_ask.put(None)

    def _look(self) -> None:
        at, now, peak = time.perf_counter() - self.started, 0, 0
        for pid in tree(self._pid):
            try:
                program = program_of(pid)
            except OSError:
                continue
            status = read(Path(f"/proc/{pid}/status"))
            rss = field_kib(status, "VmRSS")
            if rss and program != self._tool:
                now += rss
                highest = field_kib(status, "VmHWM")
                peak += highest
                self.files_kib[pid] = field_kib(status, "RssFile") + field_kib(status, "RssShmem")
                self.own_kib[pid] = max(highest - self.files_kib[pid], self.own_kib.get(pid, 0))
                self.programs_kib[program] = max(rss, self.programs_kib.get(program, 0))
                if (pid, program) not in self._known:
                    self._to_ask.put((pid, program))
        if now:
            self.series.append((round(at, 3), now))
        self.peak_kib = max(self.peak_kib, peak)

    def _ask_on(self) -> None:
        while asked := self._to_ask.get():
            if asked not in self._known:
                self._ask(*asked)

    def _ask(self, pid: int, program: str) -> None:
        try:
            file = malloc_file(pid) if program_of(pid) == program else None
        except OSError:
            return  # it has ended
        except ProofError as error:
            self.unproven[program] = str(error)
            self._known.add((pid, program))
            return
        if file is None:
            return  # too early, or another program by now: next time
        if self.served.setdefault(program, file) != file:
            self.unproven[program] = f"{program} was served by {self.served[program]} and by {file}"
        self._known.add((pid, program))

    def one_file(self) -> Path:
        """The file whose malloc all programs of the tree call; an error when they do not, or none could be asked."""
        if self.unproven:
            raise LabError("; ".join(self.unproven.values()))
        if not self.served:
            raise LabError("the program ended before it could be asked which malloc it calls")
        if len(set(self.served.values())) > 1:
            raise LabError("not one malloc: " + "; ".join(f"{p} calls that of {f}" for p, f in self.served.items()))
        return next(iter(self.served.values()))
