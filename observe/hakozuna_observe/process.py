# SPDX-License-Identifier: Apache-2.0
"""A process as the kernel shows it: its memory, its mappings, its threads.

Reads memory by process_vm_readv, which neither stops the process nor tells it; the kernel allows that to who may trace
it (the same user, root, and Yama's kernel.yama.ptrace_scope). What fails is an `UnseenError` with a sentence for the
user.

All of it is hostile input: any user may write what he likes into his process. So reads are bounded, by size and by
time; files are opened only if they are regular; and names are printable before they are shown.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

PATIENCE = 30.0  # seconds that one look at a process may take
_MOST_AT_ONCE, _MOST_BYTES = 64 << 20, 1 << 30  # of one read, and of all reads of one look
_MOST_MAPPINGS = 1 << 20
_PRESENT = 3 << 62  # of an entry of /proc/PID/pagemap: in memory, or swapped out


MISUSE = 2  # the exit code of a word, a value or a file that is wrong


class UnseenError(Exception):
    """Why nothing can be said about a process; `code` is what `hz` exits with."""

    def __init__(self, sentence: str, code: int = 1) -> None:
        super().__init__(sentence)
        self.code = code


class UnreadableError(UnseenError):
    """Nothing lies at an address, or no longer."""


T = TypeVar("T")


def printable(words: str) -> str:
    """Replaces what a terminal may act on; ends of lines and tabs stay."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in words)


def one_line(words: str) -> str:
    """`printable`, without ends of lines and tabs."""
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def pid_of(word: str) -> int | None:
    """The number that a word is; None if no process can have it."""
    if not word.isascii() or not word.isdigit() or len(word) > 10 or not 0 < int(word) < 2**31:
        return None
    return int(word)


def shortened(word: str) -> str:
    return word if len(word) <= 80 else f"{word[:80]}…"


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file; `OSError` for any other. Neither waits for the writer of a FIFO nor touches a device."""
    is_linux = sys.platform.startswith("linux")
    handle = os.open(path, (os.O_PATH if is_linux else os.O_NONBLOCK) | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return Path(f"{'/proc/self/fd' if is_linux else '/dev/fd'}/{handle}").open("rb")
    finally:
        os.close(handle)


class Work(threading.Thread):
    """Calls a function in a thread that may be left behind: a system call that reads a process may never return, as
    when its memory lies in a file system of its user's."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """In the thread."""
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def ended(self, seconds: float) -> bool:
        """Waits; raises what the function raised. Returns false if it has not ended within that time."""
        self.join(seconds)
        if self._error is not None:
            raise self._error
        return not self.is_alive()


def within_patience(process: Process, work: Callable[[], T]) -> T:
    """Returns what the function returns; `UnseenError` if it does not end in time."""
    results: list[T] = []
    # Later than the process's own deadline, which says what was read.
    if not Work(lambda: results.append(work())).ended(PATIENCE + 1):
        raise process.late()
    return results[0]


class _Range(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


_LIBC = ctypes.CDLL(None, use_errno=True)


def _text(file: Path) -> str:
    """All of it; empty if it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _fields_of_stat(folder: Path) -> list[str]:
    """Those after the name, which may have blanks and brackets."""
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps that has a file. `file` tells files apart: device and inode."""

    start: int
    end: int
    access: str  # rwxp
    file: tuple[str, str]


class Process:
    """One process, by its number; that it is the same all the time is for the caller to see (`started`)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._whole = Path("/proc") / str(pid)
        self.started = self._started()
        self._thread = self._living_thread()  # of which the system tells what memory and files the process has
        self.root = self._whole if self._thread == pid else self._whole / "task" / str(self._thread)
        self._left = _MOST_BYTES
        self._until = time.monotonic() + PATIENCE

    def _started(self) -> str:
        try:
            fields = _fields_of_stat(self._whole)
            state, threads, started = fields[0], fields[17], fields[19]
        except (OSError, IndexError):
            raise UnseenError(f"there is no process {self.pid}") from None
        # A first thread that has ended is a zombie, too, while others go on.
        if state in "ZX" and threads in ("0", "1"):
            raise UnseenError(f"process {self.pid} has ended")
        return started

    def _living_thread(self) -> int:
        """The first thread, or if that one has ended another one."""
        for thread in (self.pid, *sorted(self.thread_numbers())):
            with contextlib.suppress(OSError, IndexError):
                if _fields_of_stat(self._whole / "task" / str(thread))[0] not in "ZX":
                    return thread
        return self.pid

    def is_the_same(self) -> bool:
        """Whether the number is still that process's."""
        try:
            return self._started() == self.started
        except UnseenError:
            return False

    def name(self) -> str:
        """Of the program, as the kernel has it; printable."""
        return one_line(_text(self._whole / "comm").removesuffix("\n").strip()) or "?"

    def text(self, file: str) -> str:
        """Of a file in /proc/PID; empty if there is none."""
        return _text(self.root / file)

    def number(self, file: str, key: str) -> int:
        """Of a line `key: number kB` in it, in bytes; 0 if there is none."""
        for line in self.text(file).splitlines():
            name, _, value = line.partition(":")
            if name == key:
                fields = value.split()
                return int(fields[0]) * (1024 if fields[1:] == ["kB"] else 1)
        return 0

    def thread_name(self, number: int) -> str:
        """Printable; empty if it has ended."""
        return one_line(_text(self._whole / f"task/{number}/comm").removesuffix("\n").strip())

    def mappings(self) -> list[Mapping]:
        """Those of files."""
        found = []
        try:
            with (self.root / "maps").open("rb") as file:
                for line, _ in zip(file, range(_MOST_MAPPINGS), strict=False):
                    fields = line.decode(errors="replace").split(maxsplit=5)
                    if len(fields) == 6 and fields[5].startswith("/"):
                        start, _, end = fields[0].partition("-")
                        found.append(Mapping(int(start, 16), int(end, 16), fields[1], (fields[3], fields[4])))
        except PermissionError:
            raise self._forbidden() from None
        except OSError:
            raise UnseenError(f"process {self.pid} has ended") from None
        return found

    def touched(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Ranges of pages that have memory: reading any other would give the process a page. All of it where the system
        does not say."""
        page = os.sysconf("SC_PAGESIZE")
        known = array("Q")
        with contextlib.suppress(OSError), (self.root / "pagemap").open("rb", buffering=0) as file:
            file.seek(start // page * known.itemsize)
            text = file.read((end - start) // page * known.itemsize) or b""
            known.frombytes(text[: len(text) // known.itemsize * known.itemsize])
        if not known:
            yield start, end
            return
        first = None
        for number, entry in enumerate(known):
            if entry & _PRESENT and first is None:
                first = number
            elif not entry & _PRESENT and first is not None:
                yield start + first * page, start + number * page
                first = None
        if first is not None:
            yield start + first * page, start + len(known) * page

    def damaged(self) -> UnseenError:
        """Where what the library says of itself cannot be true."""
        return UnseenError(f"process {self.pid}: the description of its library is damaged")

    def is_late(self) -> bool:
        """Returns true if a look at it has taken too long."""
        return time.monotonic() > self._until

    def late(self) -> UnseenError:
        """Says so."""
        return UnseenError(f"process {self.pid}: it cannot be read within {PATIENCE:.0f} s")

    def read(self, at: int, count: int) -> bytes:
        """So many bytes from there; `UnseenError` if they cannot be read."""
        if count == 0:
            return b""
        self._left -= max(count, 0)
        if not 0 < count <= _MOST_AT_ONCE or self._left < 0:
            raise self.damaged()
        if not 0 <= at < 1 << 64:
            raise UnreadableError(f"process {self.pid}: there is no address {at:#x}")
        if self.is_late():
            raise self.late()
        buffer = ctypes.create_string_buffer(count)
        here = _Range(ctypes.cast(buffer, ctypes.c_void_p), count)
        there = _Range(at, count)
        done = _LIBC.process_vm_readv(self._thread, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if done == count:
            return buffer.raw
        error = ctypes.get_errno() if done < 0 else errno.EFAULT
        if error in (errno.EPERM, errno.ENOSYS):
            raise self._forbidden()
        if error == errno.ESRCH or not self.is_the_same():
            raise UnseenError(f"process {self.pid} has ended")
        raise UnreadableError(f"process {self.pid}: what lies at {at:#x} cannot be read: {os.strerror(error)}")

    def read_around(self, at: int, before: int, after: int) -> tuple[int, bytes]:
        """What can be read of that range without a gap around `at`, and where it begins."""
        first, last = at, at
        text = b""
        page = 4096
        for begin in range(at & -page, at + after, page):
            try:
                text += self.read(begin, page)
            except UnreadableError:
                break
            first, last = min(first, begin), begin + page
        for begin in range((at & -page) - page, at - before, -page):
            try:
                text = self.read(begin, page) + text
            except UnreadableError:
                break
            first = begin
        return first, text if last > first else b""

    def thread_numbers(self) -> list[int]:
        """Of all threads; empty if it has ended."""
        try:
            return [int(entry.name) for entry in (self._whole / "task").iterdir()]
        except OSError:
            return []

    def _forbidden(self) -> UnseenError:
        why = "it is another user's, or one that may not be traced"
        try:
            scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
        except OSError:
            scope = "0"
        if scope != "0" and self.owner() == os.geteuid():
            why = f"kernel.yama.ptrace_scope is {scope}: root may"
        return UnseenError(f"process {self.pid} may not be looked into: {why}", 3)

    def owner(self) -> int:
        """The number of its user; -1 if it has ended."""
        try:
            return self.root.stat().st_uid
        except OSError:
            return -1
