# SPDX-License-Identifier: Apache-2.0
"""The description that the library has of itself (src/base/layout.hpp), read from a process: which words there are,
and where.

It is searched for in the memory of the process, among the variables of each file with code. No file is opened: whatever
became of it, and whatever lies in its place now, the process has what it runs. A reader needs the version of the
description to be its own; which words there are may differ by line and by release.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hakozuna_observe.process import Process, UnreadableError, UnseenError

VERSION = 1
NOT_SERVED = 4  # the exit code that tells `hz` to ask its doctor
_MAGIC = b"hzlayout"
_HEAD = struct.Struct("<8sII16s16sIIQ")
_WORD = struct.Struct("<24sIHBB")
_MOST_WORDS, _MOST_BYTES = 4096, 4096
_MOST_LIBRARIES = 64
_MOST_VARIABLES = 64 << 20  # bytes of one mapping


@dataclass(frozen=True)
class Word:
    """`at` is an address, an offset in a pattern (`is_pattern`), or, where `bytes` is 0, a number."""

    at: int
    count: int
    bytes: int
    is_pattern: bool


@dataclass(frozen=True)
class Layout:
    """What a library in a process says about itself."""

    line: str
    release: str
    words: dict[str, Word]

    def __contains__(self, name: str) -> bool:
        return name in self.words

    def number(self, name: str, default: int = 0) -> int:
        """A number that the library gives away under that name."""
        word = self.words.get(name)
        return default if word is None else word.at


def _descriptions(process: Process) -> Iterator[int]:
    """Addresses of what may be one."""
    mappings = process.mappings()
    with_code = {one.file for one in mappings if "x" in one.access}
    for one in mappings:
        if one.file not in with_code or one.access != "rw-p":
            continue
        for start, end in process.touched(one.start, min(one.end, one.start + _MOST_VARIABLES)):
            try:
                text = process.read(start, end - start)
            except UnreadableError:  # it has just been unmapped
                continue
            at = text.find(_MAGIC)
            while at >= 0:
                yield start + at
                at = text.find(_MAGIC, at + 1)


def _text(process: Process, padded: bytes) -> str:
    text = padded.rstrip(b"\0").decode("ascii", "replace")
    if not text or not text.isprintable() or not text.isascii():
        raise process.damaged()
    return text


def _read_one(process: Process, at: int) -> Layout | None:
    try:
        head = process.read(at, _HEAD.size)
    except UnreadableError:  # the library has just been unmapped
        return None
    magic, version, size, line, release, word_bytes, count, words_at = _HEAD.unpack(head)
    if magic != _MAGIC:
        return None
    if version != VERSION:
        raise UnseenError(
            f"process {process.pid}: its library describes itself in version {version}, this hz reads {VERSION}"
        )
    if not (_HEAD.size <= size <= _MOST_BYTES and count <= _MOST_WORDS and _WORD.size <= word_bytes <= _MOST_BYTES):
        raise process.damaged()
    parts = struct.unpack_from(f"<{(size - _HEAD.size) // 8}Q", process.read(at, size), _HEAD.size)
    text = process.read(words_at, count * word_bytes)
    words = {}
    for i in range(count):
        name, offset, many, width, part = _WORD.unpack_from(text, i * word_bytes)
        if part >= len(parts):
            raise process.damaged()
        base = parts[part] if width != 0 else 0
        words[_text(process, name)] = Word(base + offset, many, width, base == 0)
    return Layout(_text(process, line), _text(process, release), words)


def find(process: Process) -> list[Layout]:
    """All libraries of ours that it has: usually one. `UnseenError` if there is none."""
    layouts: list[Layout] = []
    for at in _descriptions(process):
        layout = _read_one(process, at)
        if layout is not None:
            layouts.append(layout)
        if len(layouts) > _MOST_LIBRARIES:
            raise process.damaged()
    if not layouts:
        raise UnseenError(f"process {process.pid} ({process.name()}) is not served by Hakozuna", NOT_SERVED)
    return layouts
