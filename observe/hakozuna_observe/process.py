# SPDX-License-Identifier: Apache-2.0
"""A process as the kernel shows it: its memory, its mappings, its threads.

Reads memory by process_vm_readv, which neither stops the process nor tells it; the kernel allows that to who may trace
it (the same user, root, and Yama's kernel.yama.ptrace_scope). What fails is an `UnseenError` with a sentence for the
user.
"""

from __future__ import annotations

import ctypes
import errno
import os
from dataclasses import dataclass
from pathlib import Path


class UnseenError(Exception):
    """Why nothing can be said about a process; `code` is what `hz` exits with."""

    def __init__(self, sentence: str, code: int = 1) -> None:
        super().__init__(sentence)
        self.code = code


class UnreadableError(UnseenError):
    """Nothing lies at an address, or no longer."""


class _Range(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps that has a file."""

    start: int
    offset: int
    path: str


class Process:
    """One process, by its number; that it is the same all the time is for the caller to see (`started`)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.root = Path("/proc") / str(pid)
        self.started = self._started()

    def _started(self) -> str:
        try:
            # The name may have blanks and brackets; the fields after it have none.
            return (self.root / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            raise UnseenError(f"there is no process {self.pid}") from None

    def is_the_same(self) -> bool:
        """Whether the number is still that process's."""
        try:
            return self._started() == self.started
        except UnseenError:
            return False

    def name(self) -> str:
        """Of the program, as the kernel has it."""
        return self.text("comm").strip() or "?"

    def text(self, file: str) -> str:
        """Of a file in /proc/PID; empty if there is none."""
        try:
            return (self.root / file).read_text(errors="replace")
        except OSError:
            return ""

    def number(self, file: str, key: str) -> int:
        """Of a line `key: number kB` in it, in bytes; 0 if there is none."""
        for line in self.text(file).splitlines():
            name, _, value = line.partition(":")
            if name == key:
                fields = value.split()
                return int(fields[0]) * (1024 if fields[1:] == ["kB"] else 1)
        return 0

    def thread_name(self, number: int) -> str:
        """Empty if it has ended."""
        return self.text(f"task/{number}/comm").strip()

    def mappings(self) -> list[Mapping]:
        """Those of files, from their beginning."""
        try:
            lines = (self.root / "maps").read_text(errors="replace").splitlines()
        except PermissionError:
            raise self._forbidden() from None
        except OSError:
            raise UnseenError(f"process {self.pid} has ended") from None
        if not lines and self.text("status").partition("State:")[2].split()[:1] == ["Z"]:
            raise UnseenError(f"process {self.pid} has ended")
        found = []
        for line in lines:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                found.append(Mapping(int(fields[0].partition("-")[0], 16), int(fields[2], 16), fields[5]))
        return found

    def read(self, at: int, count: int) -> bytes:
        """So many bytes from there; `UnseenError` if they cannot be read."""
        if count == 0:
            return b""
        buffer = ctypes.create_string_buffer(count)
        here = _Range(ctypes.cast(buffer, ctypes.c_void_p), count)
        there = _Range(at, count)
        done = _LIBC.process_vm_readv(self.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
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
            return [int(entry.name) for entry in (self.root / "task").iterdir()]
        except OSError:
            return []

    def _forbidden(self) -> UnseenError:
        why = "it is another user's, or one that may not be traced"
        try:
            scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
        except OSError:
            scope = "0"
        if scope != "0" and self._owner() == os.geteuid():
            why = f"kernel.yama.ptrace_scope is {scope}: root may"
        return UnseenError(f"process {self.pid} may not be looked into: {why}", 3)

    def _owner(self) -> int:
        try:
            return self.root.stat().st_uid
        except OSError:
            return -1
