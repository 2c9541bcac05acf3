# SPDX-License-Identifier: Apache-2.0
"""`hz explain`: what a report of the library means, where in the sources its calls are, and what to try next.

Called by __main__.py. Reads text, finds the library's lines in it, and asks symbols.py for names. The text may be
anybody's: a file that it names is opened only if it is a regular one, and what is printed is printable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hakozuna_observe.process import one_line
from hakozuna_observe.symbols import Frame, Names, demangled

_GUARD = "HZ_GUARD_SAMPLE=100 puts one block in 100 between pages that nobody may touch"
_SECURE = "hz run --line secure finds it at the free"


@dataclass(frozen=True)
class Meaning:
    """Of a code: what the program did, and what finds the rest."""

    what: str
    next: tuple[str, ...]


MEANINGS = {
    "E01": Meaning(
        "The pointer is no address of this heap: another allocator's, the stack's, a global's, or wild.",
        (
            "Look whether a library brings an allocator of its own (hz doctor -- PROGRAM) and passes its blocks on.",
            "Look whether the pointer was set at all.",
        ),
    ),
    "E02": Meaning(
        "The pointer is an address of this heap where nothing is allocated: a block that was freed long ago.",
        (f"{_GUARD}, and tells who freed it.",),
    ),
    "E03": Meaning(
        "A block that is free already was freed again.",
        (
            "'called from' is the second free. 'noticed in' is where the heap found out, after it.",
            f"{_GUARD}, and tells the first free and the allocation.",
            f"{_SECURE}.",
        ),
    ),
    "E04": Meaning(
        "The pointer leads into a block, not to its start.",
        ("Look for a pointer that was moved on (p++), or for the second base class of an object.",),
    ),
    "E05": Meaning(
        "The size that was given at the free is not the size of the block.",
        (
            "Look for a delete by a base class without a virtual destructor, or for a class that two libraries"
            " declare in two ways.",
        ),
    ),
    "E06": Meaning(
        "A block was written to after it was freed.",
        (f"{_GUARD}, and tells who writes.",),
    ),
    "E07": Meaning(
        "The heap of hz_heap_... has ended, or never was one.",
        ("Look for a handle that is used after hz_heap_destroy or hz_heap_delete.",),
    ),
    "E08": Meaning(
        "A block was read or written after it was freed.",
        ("'freed' is who freed it; 'code' is who touched it.",),
    ),
    "E09": Meaning(
        "The program read or wrote beside a block.",
        ("'allocated' is who asked for the block: was it asked for too little?",),
    ),
}

_REPORT = re.compile(r"hz: (?:fatal|error): ((E\d\d) \S+ .*)")
_CALL = re.compile(r"hz: (called from|noticed in) (?:(\S+)\+0x[0-9a-f]+ )?\((?:(.+)\+)?0x([0-9a-f]{1,16})\)")
_STACK = re.compile(r"hz: guarded (allocated|freed) thread=(\d+) stack=((?:0x[0-9a-f]{1,16},?)*)")
_BLOCK = re.compile(r"hz: guarded (block=.*)")
_MAP = re.compile(r"hz: guarded map ([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S+ ([0-9a-f]{1,16}) \S+ \d+ +(/.*)")


@dataclass(frozen=True)
class Call:
    """Where a call returns to, in a file; `file` is empty where it is not known."""

    file: str
    at: int  # behind the first byte that was loaded; of a guarded stack, and where there is no file, the address
    name: str = ""  # as the library told it


@dataclass
class Report:
    """One line of a bad pointer, and what follows it."""

    line: str
    code: str
    stacks: dict[str, list[Call]] = field(default_factory=dict)  # by what the calls did
    block: str = ""
    mappings: list[tuple[int, int, int, str]] = field(default_factory=list)  # begin, end, offset, file


def reports(lines: Iterable[str]) -> Iterator[Report]:
    """Those in the text, in its order. Between them, and before the library's lines, may stand anything."""
    report: Report | None = None
    for line in lines:
        if found := _REPORT.search(line):
            if report is not None:
                yield report
            report = Report(one_line(found[1]), found[2])
        elif report is None:
            continue
        elif found := _CALL.search(line):
            call = Call(found[3] or "", int(found[4], 16), found[2] or "")
            report.stacks.setdefault(found[1], []).append(call)
        elif found := _STACK.search(line):
            calls = [Call("", int(each, 16)) for each in found[3].split(",") if each]
            report.stacks[f"{found[1]} by thread {found[2]}"] = calls
        elif found := _BLOCK.search(line):
            report.block = one_line(found[1])
        elif found := _MAP.search(line):
            report.mappings.append((int(found[1], 16), int(found[2], 16), int(found[3], 16), found[4]))
    if report is not None:
        yield report


def _named(report: Report, calls: list[Call], names: Names) -> list[tuple[Frame, ...]]:
    """The frames of each call, the innermost first. A call returns behind itself, so the byte before is asked for."""
    loaded: dict[str, list[int]] = {}
    mapped: dict[str, list[int]] = {}
    places: list[tuple[str, int, bool]] = []
    for call in calls:
        place = (call.file, call.at - 1, False)
        for begin, end, offset, file in report.mappings if not call.file else ():
            if begin <= call.at - 1 < end:
                place = (file, call.at - 1 - begin + offset, True)
        places.append(place)
        if place[0].startswith("/"):
            (mapped if place[2] else loaded).setdefault(place[0], []).append(place[1])
    known = {(file, True): names.in_file(Path(file), offsets) for file, offsets in mapped.items()}
    known |= {(file, False): names.behind_first(Path(file), offsets) for file, offsets in loaded.items()}
    plain = demangled({call.name for call in calls if call.name})
    found = []
    for call, (file, at, is_mapped) in zip(calls, places, strict=True):
        told = Frame(plain[call.name], module=file, is_known=True) if call.name else None
        frames = known.get((file, is_mapped), {}).get(at, ())
        if told is not None and not (frames and frames[-1].is_known):
            frames = (told,)
        found.append(frames or (Frame(f"{Path(file).name}+{at + 1:#x}" if file else f"{call.at:#x}"),))
    return found


def _up_to_main(frames: list[Frame]) -> list[Frame]:
    """What calls main is the C library's."""
    last = next((number for number, frame in enumerate(frames) if frame.function == "main"), len(frames))
    return frames[: last + 1]


def _rows(frames: Iterable[Frame]) -> list[str]:
    shown = [(one_line(frame.function), one_line(frame.place)) for frame in frames]
    width = min(max((len(function) for function, _ in shown), default=0), 60)
    return [f"  {function:<{width}}  {place}".rstrip() for function, place in shown]


def render(report: Report, names: Names) -> str:
    """A report for people."""
    meaning = MEANINGS.get(report.code)
    lines = [report.line] + ([meaning.what] if meaning else [])
    if report.block:
        lines.append(report.block)
    for did, calls in report.stacks.items():
        frames = [frame for each in _named(report, calls, names) for frame in each]
        lines += ["", did, *(_rows(_up_to_main(frames)) or ["  nobody knows"])]
    advice = [each for each in meaning.next if not (report.block and _GUARD in each)] if meaning else []
    if advice:
        lines += ["", "what to try next", *(f"  {each}" for each in advice)]
    return "\n".join(lines)


def explain(text: str) -> str:
    """All reports of a text; empty if it has none."""
    names = Names()
    return "\n\n".join(render(each, names) for each in reports(text.splitlines()))
