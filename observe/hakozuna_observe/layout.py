# SPDX-License-Identifier: Apache-2.0
"""The description that the library has of itself (src/base/layout.hpp), read from a process: which words there are,
and where.

A reader needs the version of the description to be its own; which words there are may differ by line and by release.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hakozuna_observe import elf
from hakozuna_observe.process import Process, UnreadableError, UnseenError

VERSION = 1
NOT_SERVED = 4  # the exit code that tells `hz` to ask its doctor
_MAGIC = b"hzlayout"
_HEAD = struct.Struct("<8sII16s16sIIQ")
_WORD = struct.Struct("<24sIHBB")
_MOST_WORDS, _MOST_BYTES = 4096, 4096


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


@lru_cache(maxsize=512)
def _description_of(path: str, _identity: tuple[int, int, int]) -> elf.Found | None:
    with Path(path).open("rb") as file:
        return elf.find_description(file)


def _descriptions(process: Process) -> list[int]:
    """Addresses of them, of every file that is mapped."""
    found, seen = [], set()
    for mapping in process.mappings():
        if mapping.offset != 0 or mapping.path in seen:
            continue
        seen.add(mapping.path)
        path = process.root / "root" / mapping.path.lstrip("/")
        if mapping.path.endswith(" (deleted)"):
            # The program itself can be read all the same; a library cannot, but to root.
            path = process.root / "exe"
        try:
            status = Path(path).stat()
            section = _description_of(str(path), (status.st_dev, status.st_ino, status.st_mtime_ns))
        except OSError:
            continue
        if section is not None:
            found.append(mapping.start + section.section - section.loaded)
    return found


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("ascii", "replace")


def _read_one(process: Process, at: int) -> Layout | None:
    try:
        head = process.read(at, _HEAD.size)
    except UnreadableError:  # the file is another one by now
        return None
    magic, version, size, line, release, word_bytes, count, words_at = _HEAD.unpack(head)
    if magic != _MAGIC:
        return None
    if version != VERSION:
        raise UnseenError(
            f"process {process.pid}: its library describes itself in version {version}, this hz reads {VERSION}"
        )
    if not (_HEAD.size <= size <= _MOST_BYTES and count <= _MOST_WORDS and _WORD.size <= word_bytes <= _MOST_BYTES):
        raise UnseenError(f"process {process.pid}: the description of its library is damaged")
    parts = struct.unpack_from(f"<{(size - _HEAD.size) // 8}Q", process.read(at, size), _HEAD.size)
    text = process.read(words_at, count * word_bytes)
    words = {}
    for i in range(count):
        name, offset, many, width, part = _WORD.unpack_from(text, i * word_bytes)
        base = parts[part] if width != 0 and part < len(parts) else 0
        words[_text(name)] = Word(base + offset, many, width, base == 0)
    return Layout(_text(line), _text(release), words)


def find(process: Process) -> list[Layout]:
    """All libraries of ours that it has: usually one. `UnseenError` if there is none."""
    layouts = [layout for at in _descriptions(process) if (layout := _read_one(process, at)) is not None]
    if not layouts:
        raise UnseenError(f"process {process.pid} ({process.name()}) is not served by Hakozuna", NOT_SERVED)
    return layouts
