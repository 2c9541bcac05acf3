# SPDX-License-Identifier: Apache-2.0
"""Asks a running process about its knobs, and sets them: `hz ctl`.

The process listens on an abstract Unix socket, if it was started with HZ_CONTROL=1 (src/os/linux_control.cpp). One line
goes in, and a text comes out, whose last line is an error of errno, or 0. The socket's name has the process's number in
it, which processes of several namespaces may share, and a random part. The kernel says which process is at the other
end, so none answers for another.
"""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import struct
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from hakozuna_observe import layout
from hakozuna_observe.process import Process, UnseenError, printable

REFUSED, FORBIDDEN = 2, 3  # what `hz ctl` exits with
_PATIENCE = 5.0  # seconds
_MOST_BYTES, _MOST_DIGITS = 1 << 20, 10  # of an answer, and of the error in it
_PEER = struct.Struct("3i")


@dataclass(frozen=True)
class Key:
    """A row of the list. `when` it can be set: live, start, action, or none, where the line has nothing of it."""

    key: str
    when: str
    accepted: str
    value: str  # of an action: what it does


def _number_there(process: Process) -> int:
    """The process's own number, in its innermost namespace."""
    for row in process.text("status").splitlines():
        if row.startswith("NStgid:"):
            return int(row.split()[-1])
    return process.pid


def _names(process: Process) -> list[str]:
    """Of sockets that listen, and may be the process's."""
    form = re.compile(rb"\S+: \S+ \S+ 00010000 .* @(hakozuna\.%d\.[0-9]+)" % _number_there(process))
    try:
        rows = Path("/proc/net/unix").read_bytes().split(b"\n")
    except OSError:
        return []
    return ["\0" + found[1].decode() for row in rows if (found := form.fullmatch(row)) is not None]


def _connected(process: Process) -> socket.socket:
    until = time.monotonic() + _PATIENCE
    is_busy = True
    while is_busy:
        is_busy = False
        for name in _names(process):
            end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            end.settimeout(_PATIENCE)
            try:
                end.connect(name)
                pid, _, _ = _PEER.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
                if pid == process.pid:
                    return end
            except BlockingIOError:  # as many wait as may
                is_busy = True
            except OSError:  # it has just ended
                pass
            end.close()
            if time.monotonic() > until:
                raise TimeoutError
        time.sleep(0.02 if is_busy else 0)
    raise _no_socket(process)


def _no_socket(process: Process) -> UnseenError:
    """Why there is none; as far as may be seen."""
    if not process.is_the_same():
        return UnseenError(f"process {process.pid} has ended")
    why = "it needs HZ_CONTROL=1 when it starts, and has to be in this network namespace"
    try:
        layout.find(process)
    except UnseenError as unseen:
        if unseen.code == layout.NOT_SERVED:
            return unseen
    return UnseenError(f"process {process.pid} does not permit control: {why}", FORBIDDEN)


def _whole(end: socket.socket) -> bytes:
    text = b""
    until = time.monotonic() + _PATIENCE
    with contextlib.suppress(ConnectionResetError):  # it did not want to read all that it was sent
        while len(text) < _MOST_BYTES and (part := end.recv(65536)):
            text += part
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            end.settimeout(left)
    return text


def ask(pid: int, line: str) -> str:
    """What the process answers; `UnseenError` if it refuses, or nobody answers."""
    if "\n" in line:
        raise UnseenError("a key or a value has no end of a line in it", REFUSED)
    process = Process(pid)
    try:
        with _connected(process) as end:
            with contextlib.suppress(BrokenPipeError):  # it has said why, or ended
                end.sendall(line.encode(errors="surrogateescape") + b"\n")
            answer = _whole(end)
    except TimeoutError:
        raise UnseenError(f"process {pid} does not answer") from None
    except OSError as error:
        raise UnseenError(f"process {pid} does not answer: {error.strerror}") from None
    text, _, code = printable(answer.decode(errors="replace")).rstrip("\n").rpartition("\n")
    if not code.isdecimal() or len(code) > _MOST_DIGITS:
        raise UnseenError(f"process {pid} has ended, or its answer is damaged")
    if code != "0":
        raise UnseenError(text, FORBIDDEN if int(code) == errno.EACCES else REFUSED)
    return text


def keys(pid: int) -> list[Key]:
    """All that it can be asked for."""
    rows = [row.split("\t") for row in ask(pid, "get list").splitlines() if row]
    if any(len(row) != 4 for row in rows):
        raise UnseenError(f"process {pid}: this hz does not understand its list")
    return [Key(*row) for row in rows]


def as_json(rows: list[Key]) -> dict[str, dict[str, str]]:
    """By key."""
    return {one.key: {name: value for name, value in asdict(one).items() if name != "key"} for one in rows}


def render(rows: list[Key]) -> str:
    """For people."""
    widths = [max(len(word) for word in column) for column in zip(*(_columns(one) for one in rows), strict=True)]
    lines = []
    for one in rows:
        words = [word.ljust(width) for word, width in zip(_columns(one), widths, strict=True)]
        lines.append("  ".join([*words, one.value if one.when == "action" else one.accepted]).rstrip())
    return "\n".join(lines)


def _columns(one: Key) -> tuple[str, str, str]:
    return one.key, one.when, "" if one.when == "action" else one.value


def supported() -> bool:
    """Abstract sockets are Linux's."""
    return sys.platform.startswith("linux")
