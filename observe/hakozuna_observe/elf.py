# SPDX-License-Identifier: Apache-2.0
"""Where the library's description lies in an ELF file: a section of that name, which also a stripped file has.

Called once for each file that a process has mapped; reads the headers alone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

SECTION = b".hakozuna"
_LOADED = 1  # PT_LOAD


@dataclass(frozen=True)
class Found:
    """Addresses as the file has them: of the section, and of the first byte that is loaded."""

    section: int
    loaded: int


def _read(file: BinaryIO, at: int, count: int) -> bytes:
    file.seek(at)
    text = file.read(count)
    if len(text) != count:
        raise EOFError
    return text


def find_description(file: BinaryIO) -> Found | None:
    """None for a file without one, and for what is no 64-bit little-endian ELF file."""
    try:
        header = _read(file, 0, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            return None
        programs, sections = struct.unpack_from("<QQ", header, 32)
        program_bytes, program_count, section_bytes, section_count, names = struct.unpack_from("<HHHHH", header, 54)
        if section_count == 0 or names >= section_count:
            return None
        rows = [
            struct.unpack_from("<IIQQQQ", _read(file, sections + i * section_bytes, section_bytes))
            for i in range(section_count)
        ]
        texts = _read(file, rows[names][4], rows[names][5])
        section = next((row[3] for row in rows if texts[row[0] :].startswith(SECTION + b"\0")), None)
        if section is None:
            return None
        loads = [
            struct.unpack_from("<IIQQ", _read(file, programs + i * program_bytes, program_bytes))
            for i in range(program_count)
        ]
        loaded = min(load[3] - load[2] for load in loads if load[0] == _LOADED)
    except (EOFError, struct.error, ValueError):
        return None
    return Found(section, loaded)
