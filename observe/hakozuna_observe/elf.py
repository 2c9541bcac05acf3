# SPDX-License-Identifier: Apache-2.0
"""An ELF file, as far as names for addresses need it: the build ID, and which function an address is in.

symbols.py asks for the files that stacks lead through. Reads the headers; the tables of symbols only when asked for. A
file may be anything that a user mapped: what is read of it, and the length of a name, are bounded.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO

_LOADED = 1  # PT_LOAD
_NOTE = 7  # SHT_NOTE
_SYMBOLS, _DYNAMIC_SYMBOLS = 2, 11  # SHT_SYMTAB, SHT_DYNSYM
_NO_BITS = 8  # SHT_NOBITS
_BUILD_ID = 3  # NT_GNU_BUILD_ID
_FUNCTIONS = frozenset((2, 10))  # STT_FUNC, STT_GNU_IFUNC
# .eh_frame_hdr of version 1: a place of 4 bytes, then a count of 4 bytes and rows of twice 4 bytes, relative to it.
_SEARCHED = b"\1\x1b\3\x3b"
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PAGE = 4096  # the least of any system; a file's first part begins at a multiple of its own
_MOST_BYTES, _MOST_NAME, _MOST_NOTES = 512 << 20, 1 << 16, 1 << 16


@dataclass(frozen=True)
class _Section:
    name: bytes
    kind: int
    address: int
    at: int
    size: int
    link: int


@dataclass(frozen=True)
class _Loaded:
    at: int
    address: int
    size: int


class Image:
    """The headers of a file; `EOFError` if it is no 64-bit little-endian ELF file, or a damaged one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._bytes = os.fstat(file.fileno()).st_size
        header = self._read(0, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise EOFError
        programs, sections = struct.unpack_from("<QQ", header, 32)
        program_bytes, program_count, section_bytes, section_count, names = struct.unpack_from("<HHHHH", header, 54)
        self.loads = self._programs(programs, program_bytes, program_count)
        self.sections = self._sections(sections, section_bytes, section_count, names)

    def _read(self, at: int, count: int) -> bytes:
        if at + count > self._bytes or count > _MOST_BYTES:
            raise EOFError
        self._file.seek(at)
        text = self._file.read(count)
        if len(text) != count:
            raise EOFError
        return text

    def _programs(self, at: int, width: int, count: int) -> list[_Loaded]:
        if count and width < 40:
            raise EOFError
        rows = (struct.unpack_from("<IIQQQQ", self._read(at + i * width, 40)) for i in range(count))
        return [_Loaded(row[2], row[3], row[5]) for row in rows if row[0] == _LOADED]

    def _sections(self, at: int, width: int, count: int, names: int) -> list[_Section]:
        if count == 0 or names >= count or width < _SECTION_HEADER.size:
            return []
        rows = [_SECTION_HEADER.unpack(self._read(at + i * width, _SECTION_HEADER.size)) for i in range(count)]
        texts = self._read(rows[names][4], rows[names][5])
        return [_Section(_name_at(texts, row[0]), row[1], row[3], row[4], row[5], row[6]) for row in rows]

    def section(self, name: bytes) -> _Section | None:
        """The first of that name."""
        return next((one for one in self.sections if one.name == name), None)

    def has_lines(self) -> bool:
        """Whether it has debugging information that leads to lines of sources."""
        return any(
            one.name in (b".debug_line", b".zdebug_line") and one.kind != _NO_BITS and one.size for one in self.sections
        )

    def build_id(self) -> str:
        """In hexadecimal; empty if it has none."""
        for one in self.sections:
            if one.kind != _NOTE or one.size > _MOST_NOTES:
                continue
            notes, at = self._read(one.at, one.size), 0
            while at + 12 <= len(notes):
                name_bytes, content_bytes, kind = struct.unpack_from("<III", notes, at)
                content = at + 12 + (name_bytes + 3 & -4)
                if kind == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
                    return notes[content : content + content_bytes].hex()
                at = content + (content_bytes + 3 & -4)
        return ""

    def address_of(self, at: int) -> int | None:
        """The address, as the file counts them, of what lies at an offset in it."""
        for one in self.loads:
            if one.at <= at < one.at + one.size:
                return at - one.at + one.address
        return None

    def address_behind_first(self, distance: int) -> int | None:
        """The same of what lies so far behind the first byte that is loaded."""
        first = min(self.loads, key=lambda one: one.address, default=None)
        return None if first is None else (first.address & -_PAGE) + distance

    def functions(self) -> list[tuple[int, int, str]]:
        """Address, size and name of each, by address; of the dynamic symbols if there are no others."""
        tables = {one.kind: one for one in self.sections if one.kind in (_SYMBOLS, _DYNAMIC_SYMBOLS)}
        table = tables.get(_SYMBOLS) or tables.get(_DYNAMIC_SYMBOLS)
        if table is None or table.link >= len(self.sections):
            return []
        names = self._read(self.sections[table.link].at, self.sections[table.link].size)
        text = self._read(table.at, table.size // _SYMBOL.size * _SYMBOL.size)
        found = []
        for name, info, _, section, address, size in _SYMBOL.iter_unpack(text):
            if info & 15 in _FUNCTIONS and section != 0:
                # Of several names a global one comes last, which is the one that is taken.
                found.append((address, info >> 4, size, _name_at(names, name).decode("utf-8", "replace")))
        found.sort()
        return [(address, size, name) for address, _, size, name in found]

    def beginnings(self) -> list[int]:
        """Addresses at which functions begin, also those of stripped files: what the unwinder searches."""
        table = self.section(b".eh_frame_hdr")
        text = b"" if table is None else self._read(table.at, table.size)
        if table is None or text[:4] != _SEARCHED:
            return []
        (count,) = struct.unpack_from("<I", text, 8)
        rows = struct.iter_unpack("<ii", text[12 : 12 + 8 * min(count, (len(text) - 12) // 8)])
        return sorted(table.address + begin for begin, _ in rows)


def _name_at(names: bytes, at: int) -> bytes:
    end = names.find(b"\0", at, at + _MOST_NAME)
    return names[at : end if end >= 0 else at]
