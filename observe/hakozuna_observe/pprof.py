# SPDX-License-Identifier: Apache-2.0
"""pprof's profile.proto, gzipped, of heap profiles: what `go tool pprof`, speedscope and their like read.

The names of its sample types are those that Go's heap profiles have, so that pprof's own options (-inuse_space) find
them; peak_space and peak_objects are beside them. The form: https://github.com/google/pprof/blob/main/proto/profile.proto.
Protocol buffers are written here as they are on the wire, of which a profile needs two kinds of fields.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence

from hakozuna_observe.profile import Profile
from hakozuna_observe.symbols import Frame, Named, Names

TYPES = {"live": "inuse", "allocated": "alloc", "peak": "peak"}


def _number(value: int) -> bytes:
    """A varint."""
    text = bytearray()
    while value > 127:
        text.append(value & 127 | 128)
        value >>= 7
    text.append(value)
    return bytes(text)


class _Message:
    def __init__(self) -> None:
        self.text = bytearray()

    def number(self, field: int, value: int) -> None:
        if value != 0:
            self.text += _number(field << 3) + _number(value)

    def bytes(self, field: int, content: bytes | bytearray) -> None:
        self.text += _number(field << 3 | 2) + _number(len(content)) + content

    def numbers(self, field: int, values: Iterable[int]) -> None:
        self.bytes(field, b"".join(map(_number, values)))


class _Numbered:
    """Numbers for things that are written once, from 1 on; strings, whose first is empty, from 0 on."""

    def __init__(self, first: int) -> None:
        self._of: dict[object, int] = {}
        self._first = first

    def __contains__(self, key: object) -> bool:
        return key in self._of

    def __getitem__(self, key: object) -> int:
        return self._of.setdefault(key, len(self._of) + self._first)

    def all(self) -> Iterable[object]:
        return self._of


class _Writer:
    def __init__(self) -> None:
        self.profile = _Message()
        self.strings, self.functions = _Numbered(0), _Numbered(1)
        self.locations, self.mappings = _Numbered(1), _Numbered(1)
        self.named_mappings: set[int] = set()
        assert self.strings[""] == 0

    def value_type(self, field: int, kind: str, unit: str) -> None:
        message = _Message()
        message.number(1, self.strings[kind])
        message.number(2, self.strings[unit])
        self.profile.bytes(field, message.text)

    def function(self, frame: Frame) -> int:
        key = (frame.function, frame.file)
        if key not in self.functions:
            message = _Message()
            message.number(1, self.functions[key])
            message.number(2, self.strings[frame.function])
            message.number(3, self.strings[frame.function])
            message.number(4, self.strings[frame.file])
            self.profile.bytes(5, message.text)
        return self.functions[key]

    def location(self, key: tuple[int, int], mapping: int, frames: Sequence[Frame]) -> int:
        """Of an address in one of the profiles."""
        if key not in self.locations:
            message = _Message()
            message.number(1, self.locations[key])
            message.number(2, mapping)
            # Within the instruction that called, as pprof has it.
            message.number(3, max(key[1] - 1, 0))
            for frame in frames:
                # Of a file without any names pprof finds them itself, if it has the file.
                if mapping in self.named_mappings or not frame.module.startswith("/"):
                    line = _Message()
                    line.number(1, self.function(frame))
                    line.number(2, frame.line)
                    message.bytes(4, line.text)
            self.profile.bytes(4, message.text)
        return self.locations[key]

    def mappings_of(self, number: int, profile: Profile, names: Names, frames: Named) -> list[tuple[int, int, int]]:
        """Start, end and number of each that a stack leads through; the program's own first, as pprof expects it."""
        used = []
        addresses = sorted(address - 1 for address in frames)
        for code in sorted(profile.mappings, key=lambda one: one.path != profile.program):
            inside = [at for at in addresses if code.start <= at < code.end]
            if not inside and code.path != profile.program:
                continue
            known = [frame for at in inside for frame in frames[at + 1] if frame.is_known]
            message = _Message()
            message.number(1, self.mappings[number, code.start])
            message.number(2, code.start)
            message.number(3, code.end)
            message.number(4, code.offset)
            message.number(5, self.strings[code.path or "[anon]"])
            message.number(6, self.strings[names.build_id(profile, code)])
            message.number(7, int(bool(known)))
            message.number(8, int(any(frame.file for frame in known)))
            message.number(9, int(any(frame.line for frame in known)))
            message.number(10, int(any(len(frames[at + 1]) > 1 for at in inside)))
            self.profile.bytes(3, message.text)
            if known:
                self.named_mappings.add(self.mappings[number, code.start])
            used.append((code.start, code.end, self.mappings[number, code.start]))
        return used


def render(profiles: Sequence[Profile], names: Names, named: Sequence[Named], by: str) -> bytes:
    """The file."""
    writer = _Writer()
    for kind in TYPES.values():
        writer.value_type(1, f"{kind}_objects", "count")
        writer.value_type(1, f"{kind}_space", "bytes")
    for number, (profile, frames) in enumerate(zip(profiles, named, strict=True)):
        mappings = writer.mappings_of(number, profile, names, frames)
        mapping_of = {
            address: next((it for start, end, it in mappings if start < address <= end), 0) for address in frames
        }
        for site in profile.sites:
            sample = _Message()
            sample.numbers(1, [writer.location((number, at), mapping_of[at], frames[at]) for at in site.stack])
            figures = site.figures
            sample.numbers(2, [one for kind in TYPES for one in (figures.blocks_of(kind), figures.bytes_of(kind))])
            writer.profile.bytes(2, sample.text)
    writer.profile.number(9, max((one.written for one in profiles), default=0) * 1_000_000_000)
    writer.profile.number(10, max((one.uptime for one in profiles), default=0) * 1000)
    writer.value_type(11, "space", "bytes")
    writer.profile.number(12, max((one.interval for one in profiles), default=0))
    comments = [f"{one.name} {one.pid}: {one.line} {one.release}, {one.dropped} dropped" for one in profiles]
    writer.profile.numbers(13, [writer.strings[one] for one in comments])
    writer.profile.number(14, writer.strings[f"{TYPES[by]}_space"])
    for text in writer.strings.all():
        writer.profile.bytes(6, str(text).encode("utf-8", "replace"))
    return gzip.compress(bytes(writer.profile.text), mtime=0)
