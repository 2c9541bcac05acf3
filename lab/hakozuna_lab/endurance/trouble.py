# SPDX-License-Identifier: Apache-2.0
"""Trouble for a service while it works: signals, knobs set from outside, trims, limits of memory that shrink and grow.
Thrown by a thread for each service (run.py) at moments of chance, which come again with the same seed. What was set is
set back before memory is looked at, so that all looks are at a heap with the same knobs."""

import os
import random
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hakozuna_observe import control
from hakozuna_observe.process import UnseenError

from hakozuna_lab import RunError
from hakozuna_lab.watch import read, tree

PAUSE = (0.1, 1.0)  # seconds between two
STOPPED = (0.02, 0.3)
# What is set, of what the process's own list has; others have no effect while it runs, or change what is looked at.
VALUES = {
    "retain": ("105", "150", "400"),
    "thread_cache": ("16K", "256K", "2M"),
    "limit_soft": ("4M", "32M"),
    "profile_heap": ("16K", "1M"),
    "guard_sample": ("1000",),
}
DONE = ("trim", "purge")
SQUEEZED_SECONDS = 0.3
PATIENCE_SECONDS = 120.0
ROOM = 2 << 20  # bytes that a service may still grow by


def alive(pid: int) -> bool:
    """Not ended, whether its parent has asked for that or not: then there is no command line any more."""
    return bool(read(Path(f"/proc/{pid}/cmdline")))


def insist(pid: int, line: str) -> str:
    """As often as it takes: on a busy machine a line may come too late for the process, or an answer for us."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return control.ask(pid, line)
        except UnseenError:
            if time.monotonic() > deadline or not alive(pid):
                raise
            time.sleep(PAUSE[0])


class Trouble:
    def __init__(self, pid: int, own: signal.Signals | None, controlled: bool, seed: int) -> None:
        """`own`: a signal that the service has a handler for. `controlled`: it was started with HZ_CONTROL=1."""
        self.thrown: Counter[str] = Counter()
        self._pid = pid
        self._own = own
        self._random = random.Random(seed)
        self._was: dict[tuple[int, str], str] = {}  # of a process and a key: the value that it came with
        rows = [row.split("\t") for row in insist(pid, "get list").splitlines()] if controlled else []
        known = {key for key, when, *_ in rows if when in ("live", "action")}  # a line may have nothing of some
        self._signals = ["stop", *(["signal"] if own else [])]
        self._knobs = [key for key in (*VALUES, *DONE) if key in known]
        if controlled and not known.issuperset(DONE):
            raise RunError(f"process {pid} has no knobs")

    @contextmanager
    def during(self, signals_alone: bool = False) -> Iterator[None]:
        """While the block runs; when it has ended everything is as it was."""
        over = threading.Event()
        kinds = self._signals if signals_alone else self._signals + self._knobs
        thread = threading.Thread(target=self._throw_until, args=(kinds, over), name="trouble", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._set_back()

    def _throw_until(self, kinds: Sequence[str], over: threading.Event) -> None:
        while not over.wait(self._random.uniform(*PAUSE)):
            kind = self._random.choice(kinds)
            # A process may end meanwhile, or not answer while it is stopped.
            with suppress(OSError, UnseenError):
                self._throw(kind)
                self.thrown[kind] += 1

    def _throw(self, kind: str) -> None:
        if kind == "signal" and self._own:
            os.kill(self._pid, self._own)
            return
        member = self._random.choice(tree(self._pid))
        if kind == "stop":
            self._stop(member)
        elif kind in DONE:
            control.ask(member, f"set {kind}")
        else:
            self._was.setdefault((member, kind), control.ask(member, f"get {kind}"))
            control.ask(member, f"set {kind} {self._random.choice(VALUES[kind])}")

    def _stop(self, member: int) -> None:
        held = os.pidfd_open(member)
        try:
            if member in tree(self._pid):  # the number was not another's by then
                signal.pidfd_send_signal(held, signal.SIGSTOP)
                time.sleep(self._random.uniform(*STOPPED))
                signal.pidfd_send_signal(held, signal.SIGCONT)
        finally:
            os.close(held)

    def _set_back(self) -> None:
        members = set(tree(self._pid))
        for (member, key), value in self._was.items():
            if member not in members:
                continue
            try:
                insist(member, f"set {key} {value}")
            except UnseenError as error:
                if alive(member):
                    raise RunError(f"{key} could not be set back to {value}: {error}") from error
        self._was.clear()


@contextmanager
def squeezed_space(pid: int) -> Iterator[None]:
    """Hardly any address space beyond what it has: the system refuses the heap, for a moment."""
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    pages = int((read(Path(f"/proc/{pid}/statm")) or "0").split()[0])
    resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    try:
        yield
        time.sleep(SQUEEZED_SECONDS)
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, before)


@contextmanager
def squeezed_heap(pid: int) -> Iterator[None]:
    """A hard limit below what it has: the heap refuses the program, for a moment."""
    before = insist(pid, "get limit_hard")
    insist(pid, f"set limit_hard {ROOM}")
    try:
        yield
        time.sleep(SQUEEZED_SECONDS)
    finally:
        insist(pid, f"set limit_hard {before}")


def told(thrown: Counter[str]) -> str:
    """As "12 stop, 3 trim"."""
    return ", ".join(f"{thrown[kind]} {kind}" for kind in sorted(thrown)) or "none"
