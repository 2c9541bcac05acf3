# SPDX-License-Identifier: Apache-2.0
"""Names of functions that a program compiles while it runs, from the file in which its compiler lists them.

`/tmp/perf-PID.map` is what `node --perf-basic-prof`, a Java agent or `jcmd PID Compiler.perfmap`, and `python -X perf`
write: a line for each function, `START SIZE NAME`, both numbers hexadecimal. symbols.py asks for the addresses that lie
in no file. Any user may have put a file there, so it counts only if it is regular, of the process's own user and no
older than the process; no more than a bound of it is read. Costs a second for 50 MB.
"""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterable
from pathlib import Path

from hakozuna_observe.process import open_regular
from hakozuna_observe.profile import Profile

_FOLDER = "tmp"  # in the root folder of the process
_MOST_BYTES = 256 << 20
_MOST_LINE = 4096
_EARLIER = 2.0  # seconds that the clock of a file system may be behind
_SCRIPT = re.compile(r"(?:JS|Script|Eval|Function|LazyCompile):[~*^+]?(\S*) (.+?):(\d+)(?::\d+)?")
_PYTHON = re.compile(r"py::(.+):(/.+|<.+>)")
_LINE = re.compile(rb"(?:0x)?([0-9a-fA-F]{1,16}) (?:0x0*)?([0-9a-fA-F]{1,8}) (.+)\n")  # 0x: of Java's own


def path_of(profile: Profile) -> Path:
    """Where the process's compiler writes; for a process in a container, as it stands there."""
    if profile.root is None:
        return Path("/", _FOLDER, f"perf-{profile.pid}.map")
    inner = profile.pid
    try:
        for line in (profile.root / "status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                inner = int(line.split()[-1])
    except (OSError, ValueError):
        pass
    return profile.root / "root" / _FOLDER / f"perf-{inner}.map"


def names_of(profile: Profile, addresses: Iterable[int]) -> dict[int, str]:
    """Those that the file knows. Where code was compiled into the place of other code, the later name counts."""
    wanted = sorted(addresses)
    if not wanted:
        return {}
    try:
        with open_regular(path_of(profile)) as file:
            status = os.fstat(file.fileno())
            began = profile.written - profile.uptime / 1e6
            if status.st_uid != profile.owner or (profile.written and status.st_mtime < began - _EARLIER):
                return {}
            return _search(iter(lambda: file.readline(_MOST_LINE), b""), wanted)
    except OSError:
        return {}


def _search(lines: Iterable[bytes], wanted: list[int]) -> dict[int, str]:
    found: dict[int, bytes] = {}
    left = _MOST_BYTES
    for line in lines:
        left -= len(line)
        if left < 0:
            break
        parts = _LINE.fullmatch(line)
        if parts is None:
            continue
        start = int(parts[1], 16)
        at = bisect.bisect_left(wanted, start)
        if at == len(wanted) or wanted[at] >= start + int(parts[2], 16):
            continue
        end = start + int(parts[2], 16)
        while at < len(wanted) and wanted[at] < end:
            found[wanted[at]] = parts[3]
            at += 1
    return {at: name.decode("utf-8", "replace") for at, name in found.items()}


def place_of(name: str) -> tuple[str, str, int]:
    """Function, file and line of a name as compilers write it; file and line where they are in it."""
    script = _SCRIPT.fullmatch(name)
    if script is not None:
        return script[1] or "(anonymous)", script[2], int(script[3])
    python = _PYTHON.fullmatch(name)
    return (python[1], python[2], 0) if python is not None else (name, "", 0)
