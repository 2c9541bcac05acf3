# SPDX-License-Identifier: Apache-2.0
"""Heap profiles: what blocks are live, were allocated, and were live at the peak, by the stack that asked for them.

Written by a process that ran with HZ_PROFILE_HEAP, or read from its memory while it runs. All figures are estimates
that the library made of samples; only `samples`, `freed` and `lifetimes` are counts. A file is checked as it is read:
what is no profile, or not all of one, is an `UnseenError` with one sentence.
"""

from __future__ import annotations

import math
import os
import re
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hakozuna_observe import layout
from hakozuna_observe.process import Process, UnseenError, open_regular, within_patience

VERSION = 1
WITH_FUNCTIONS = 2  # the version of a file that has functions of an interpreter
UNREADABLE = 2  # the exit code where there is no such process or file, or where it is no profile
MEASURES = ("live", "allocated", "peak")
BUCKETS = 24  # of lifetimes; each twice as long as the one before, the first up to 2 microseconds
_WITHOUT = "hz7"  # the line that samples nothing
_MOST_FRAMES = 64
_MOST_LINE = 1 << 16
_MOST_TABLE = 1 << 30
_MOST_ROWS = 1 << 21  # of a file
INTERPRETED = 1 << 63  # what stands on a stack for a function of an interpreter is not below; an address is

COUNTS = (*(f"{measure}_{what}" for measure in MEASURES for what in ("blocks", "bytes")), "samples", "freed")
_NUMBER = r"([0-9]{1,19})"
_SITE = re.compile(
    rf"site {' '.join([_NUMBER] * 8)} ([0-9]{{1,10}}(?:,[0-9]{{1,10}}){{{BUCKETS - 1}}}) \|((?: [0-9a-f]{{1,16}})*)"
)
_MAP = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) (\S{4}) ([0-9a-f]{1,16}) \S+ ([0-9]{1,20})(?: +(.*))?")
_FUNCTION = re.compile(r"([89a-f][0-9a-f]{15}) ([0-9]{1,10}) ([^\t]*)\t([^\t]*)")
_HEAD = {
    "process": re.compile(r"([0-9]{1,10}) (.*)"),
    "name": re.compile(r"(.*)"),
    "library": re.compile(r"(\S+) (\S+)"),
    "time": re.compile(rf"{_NUMBER} {_NUMBER}"),
    "interval": re.compile(_NUMBER),
    "dropped": re.compile(_NUMBER),
}
_LATER = {"name"}  # older files have none


@dataclass
class Figures:
    """Of a site, or a sum of some."""

    live_blocks: int = 0
    live_bytes: int = 0
    allocated_blocks: int = 0
    allocated_bytes: int = 0
    peak_blocks: int = 0
    peak_bytes: int = 0
    samples: int = 0
    freed: int = 0
    lifetimes: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    @classmethod
    def of(cls, counts: Sequence[int], lifetimes: list[int]) -> Figures:
        """In the order of a file."""
        one = cls(lifetimes=lifetimes)
        for name, count in zip(COUNTS, counts, strict=True):
            setattr(one, name, count)
        return one

    def add(self, other: Figures) -> None:
        """Another site's."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lifetimes = [mine + theirs for mine, theirs in zip(self.lifetimes, other.lifetimes, strict=True)]

    def bytes_of(self, by: str) -> int:
        """By what measure."""
        return int(getattr(self, f"{by}_bytes"))

    def blocks_of(self, by: str) -> int:
        """By what measure."""
        return int(getattr(self, f"{by}_blocks"))

    def error_of(self, by: str, interval: int) -> float:
        """The standard error of `bytes_of`: of n samples, each taken with probability p, sqrt((1 - p) / n) of it."""
        amount = self.bytes_of(by)
        if amount == 0 or self.samples == 0 or self.allocated_blocks == 0 or interval == 0:
            return 0.0
        one = self.allocated_bytes / self.allocated_blocks
        behind = max(amount * self.samples / max(self.allocated_bytes, 1), 1.0)
        return amount * math.sqrt(math.exp(-one / interval) / behind)


@dataclass
class Site:
    """The stack has return addresses, the caller of malloc first, and what stands for an interpreter's functions."""

    stack: tuple[int, ...]
    figures: Figures


@dataclass(frozen=True)
class Function:
    """A function of an interpreter, at one of its lines."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Code:
    """A mapping of the process that may be executed."""

    start: int
    end: int
    offset: int
    path: str  # empty where it has no file and no name
    text: str  # the line of /proc/PID/maps


@dataclass
class Profile:
    """Of one heap of one process. `root` is where its files are to be found while it lives."""

    pid: int
    program: str  # the path of its file, which may be another one than it was started by
    name: str  # by which it was started, without its folder
    line: str
    release: str
    written: int  # seconds since the epoch
    uptime: int  # microseconds
    interval: int
    dropped: int
    sites: list[Site]
    mappings: list[Code]
    root: Path | None = None
    functions: dict[int, Function] = field(default_factory=dict)  # by what stands for them on a stack
    hides_objects: bool = field(default=False, compare=False)  # in an allocator of the interpreter's
    owner: int = field(default=-1, compare=False)  # the user of the process, or of the file

    def sum(self) -> Figures:
        """Of all sites."""
        total = Figures()
        for one in self.sites:
            total.add(one.figures)
        return total


# --- files


def read(path: str) -> Profile:
    """Of a file as the library writes it."""
    try:
        with open_regular(Path(path)) as file:
            parsed = _parse(file, path)
            parsed.owner = os.fstat(file.fileno()).st_uid
            return parsed
    except (OSError, ValueError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise UnseenError(f"{path}: {why}", UNREADABLE) from None


def _lines(file: BinaryIO, path: str) -> Iterator[str]:
    """Whole ones; of what is no text the first is refused before more of it is read."""
    first = file.readline(64)
    version = re.fullmatch(rb"hakozuna heap profile ([0-9]+)\n", first)
    if version is None:
        raise UnseenError(f"{path} is no heap profile of Hakozuna", UNREADABLE)
    if int(version[1]) not in (VERSION, WITH_FUNCTIONS):
        raise UnseenError(
            f"{path}: a heap profile of version {int(version[1])}, this hz reads {VERSION} and {WITH_FUNCTIONS}",
            UNREADABLE,
        )
    while line := file.readline(_MOST_LINE):
        if not line.endswith(b"\n"):
            if len(line) == _MOST_LINE:
                raise ValueError
            break
        yield line[:-1].decode("utf-8", "replace")


def _parse(file: BinaryIO, path: str) -> Profile:
    head: dict[str, tuple[str, ...]] = {}
    sites: list[Site] = []
    mappings: list[Code] = []
    functions: dict[int, Function] = {}
    ended, number = False, 1
    try:
        for line in _lines(file, path):
            number += 1
            kind, _, rest = line.partition(" ")
            if ended or number > _MOST_ROWS:
                raise ValueError
            if kind == "site":
                sites.append(_site(line))
            elif kind == "function":
                found_function = _FUNCTION.fullmatch(rest)
                if found_function is None:
                    raise ValueError
                stands, row, name, file_name = found_function.groups()
                functions[int(stands, 16)] = Function(name, file_name, int(row))
            elif kind == "map":
                mappings.append(_code(rest))
            elif line == "end":
                ended = True
            elif (form := _HEAD.get(kind)) is not None and kind not in head and (found := form.fullmatch(rest)):
                head[kind] = found.groups()
            else:
                raise ValueError
    except ValueError:
        raise UnseenError(f"{path}: line {number} is none of a heap profile", UNREADABLE) from None
    if not ended:
        raise UnseenError(f"{path} is cut off: a heap profile ends with the line 'end'", UNREADABLE)
    if missing := ", ".join(name for name in _HEAD if name not in head and name not in _LATER):
        raise UnseenError(f"{path}: a heap profile without its line of {missing}", UNREADABLE)
    return Profile(
        pid=int(head["process"][0]),
        program=head["process"][1],
        name=head["name"][0] if "name" in head else _file_name(head["process"][1]),
        line=head["library"][0],
        release=head["library"][1],
        written=int(head["time"][0]),
        uptime=int(head["time"][1]),
        interval=int(head["interval"][0]),
        dropped=int(head["dropped"][0]),
        sites=sites,
        mappings=sorted(mappings, key=lambda one: one.start),
        functions=functions,
    )


def _file_name(program: str) -> str:
    return Path(program.removesuffix(" (deleted)")).name or "?"


def _site(line: str) -> Site:
    found = _SITE.fullmatch(line)
    if found is None:
        raise ValueError
    amounts = [int(one) for one in found.groups()[:8]]
    stack = tuple(int(one, 16) for one in found[10].split())
    if len(stack) > _MOST_FRAMES or max(amounts) >= 1 << 63:
        raise ValueError
    return Site(stack, Figures.of(amounts, [int(one) for one in found[9].split(",")]))


def _code(line: str) -> Code:
    found = _MAP.fullmatch(line)
    if found is None:
        raise ValueError
    return Code(int(found[1], 16), int(found[2], 16), int(found[4], 16), (found[6] or "").strip(), line)


def write(profile: Profile) -> str:
    """The file that `read` reads."""
    rows = [
        f"hakozuna heap profile {WITH_FUNCTIONS if profile.functions else VERSION}",
        f"process {profile.pid} {profile.program}",
        f"name {profile.name}",
        f"library {profile.line} {profile.release}",
        f"time {profile.written} {profile.uptime}",
        f"interval {profile.interval}",
        f"dropped {profile.dropped}",
    ]
    for one in profile.sites:
        known = one.figures
        amounts = " ".join(str(getattr(known, name)) for name in COUNTS)
        stack = "".join(f" {address:x}" for address in one.stack)
        rows.append(f"site {amounts} {','.join(map(str, known.lifetimes))} |{stack}")
    rows += [f"function {at:x} {one.line} {one.name}\t{one.file}" for at, one in profile.functions.items()]
    rows += [f"map {code.text}" for code in profile.mappings]
    return "\n".join([*rows, "end", ""])


# --- processes


def of_process(pid: int) -> list[Profile]:
    """Of a process while it runs: one a heap that keeps a profile."""
    process = Process(pid)
    return within_patience(process, lambda: _of_process(process))


def _of_process(process: Process) -> list[Profile]:
    heaps = layout.find(process)
    # Several heaps of one program have one profile.
    kept = {word.at: heap for heap in reversed(heaps) if (word := heap.words.get("profile.sites")) is not None}
    try:
        profiles = [found for heap in kept.values() if (found := _of_heap(process, heap)) is not None]
    except (ArithmeticError, LookupError, MemoryError, ValueError, struct.error):
        raise process.damaged() from None
    if not profiles:
        name = f"process {process.pid} ({process.name()})"
        if not any("profile.interval" in heap for heap in heaps):
            raise UnseenError(
                f"{name}: its library, {heaps[0].line} {heaps[0].release}, keeps no heap profile", UNREADABLE
            )
        why = "start it with HZ_PROFILE_HEAP=1, or set profile_heap by hz ctl"
        if all(heap.line == _WITHOUT for heap in heaps):
            why = f"line {_WITHOUT} has none"
        raise UnseenError(f"{name} keeps no heap profile: {why}", UNREADABLE)
    return profiles


def _word(process: Process, heap: layout.Layout, name: str) -> int:
    word = heap.words.get(name)
    return 0 if word is None else int.from_bytes(process.read(word.at, word.bytes), "little")


def _of_heap(process: Process, heap: layout.Layout) -> Profile | None:
    """Its threads run on, so of a busy process a site or two may be half counted."""
    interval = _word(process, heap, "profile.interval")
    table = _word(process, heap, "profile.sites") if interval else 0
    if table == 0:
        return None
    mappings = [code for line in process.text("maps").split("\n") if (code := _executable(line)) is not None]
    name = process.name()
    try:
        program = str((process.root / "exe").readlink()).encode("utf-8", "replace").decode("utf-8", "replace")
    except OSError:
        program = name
    file = _file_name(program)
    sites = list(_sites(process, heap, table))
    functions = _functions(process, heap)  # later, so that those of all sites are there
    return Profile(
        pid=process.pid,
        program=program,
        name=file if file.startswith(name) else name,  # the kernel keeps 15 bytes of it
        line=heap.line,
        release=heap.release,
        written=int(time.time()),
        uptime=_uptime(process),
        interval=interval,
        dropped=_word(process, heap, "profile.dropped"),
        sites=sites,
        functions=functions,
        hides_objects=bool(functions) and not re.search(r"(?:^|\0)PYTHONMALLOC=malloc\0", process.text("environ")),
        mappings=mappings,
        root=process.root,
        owner=process.owner(),
    )


def _executable(line: str) -> Code | None:
    found = _MAP.fullmatch(line)
    return _code(line) if found is not None and "x" in found[3] else None


def _uptime(process: Process) -> int:
    try:
        now = float(Path("/proc/uptime").read_text().split()[0])
        return max(int((now - int(process.started) / os.sysconf("SC_CLK_TCK")) * 1e6), 0)
    except (OSError, ValueError):
        return 0


def _sites(process: Process, heap: layout.Layout, table: int) -> Iterator[Site]:
    """Those in use: from the first entry of the table on, without gaps."""
    width, most = heap.number("site.bytes"), heap.number("site.most")
    names = (*COUNTS, "state", "depth", "frames", "lifetimes")
    words = {name: heap.words.get(f"site.{name}") for name in names}
    at = {name: word.at for name, word in words.items() if word is not None}
    if len(at) != len(names) or not 0 < width <= 1 << 16 or width * most > _MOST_TABLE or max(at.values()) >= width:
        raise process.damaged()
    room = min((width - at["frames"]) // 8, _MOST_FRAMES)
    together = max((1 << 20) // width, 1)
    for first in range(0, most, together):
        many = min(together, most - first)
        text = process.read(table + first * width, many * width)
        for begin in range(0, many * width, width):
            if text[begin + at["state"] : begin + at["state"] + 4] == b"\0\0\0\0":
                return
            amounts = [struct.unpack_from("<Q", text, begin + at[name])[0] for name in COUNTS]
            depth = min(struct.unpack_from("<I", text, begin + at["depth"])[0], room)
            stack = struct.unpack_from(f"<{depth}Q", text, begin + at["frames"])
            lifetimes = struct.unpack_from(f"<{BUCKETS}I", text, begin + at["lifetimes"])
            if max(amounts) < 1 << 63:  # else it is being written
                yield Site(stack, Figures.of(amounts, list(lifetimes)))


def _functions(process: Process, heap: layout.Layout) -> dict[int, Function]:
    """The functions of the interpreter in the process; those in use come first."""
    table = _word(process, heap, "profile.functions") if "profile.functions" in heap else 0
    if table == 0:
        return {}
    width, most = heap.number("function.bytes"), heap.number("function.most")
    words = [heap.words.get(f"function.{name}") for name in ("state", "line", "name", "file")]
    known = [word for word in words if word is not None and word.at + word.bytes * word.count <= width]
    if len(known) != len(words) or not 0 < width <= 1 << 16 or width * most > _MOST_TABLE:
        raise process.damaged()
    state, row, *texts = known
    functions: dict[int, Function] = {}
    together = max((1 << 20) // width, 1)
    for first in range(0, most, together):
        many = min(together, most - first)
        content = process.read(table + first * width, many * width)
        for number in range(many):
            entry = content[number * width : (number + 1) * width]
            if entry[state.at : state.at + 4] == b"\0\0\0\0":
                return functions
            name, file = (_text_of(entry[text.at : text.at + text.count]) for text in texts)
            line = struct.unpack_from("<I", entry, row.at)[0]
            functions[INTERPRETED | (first + number + 1)] = Function(name, file, line)
    return functions


def _text_of(field: bytes) -> str:
    """Up to its 0; without what ends a word or a line of a file."""
    return re.sub(r"[\t\n]", "?", field.partition(b"\0")[0].decode("utf-8", "replace"))
