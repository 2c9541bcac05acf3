# SPDX-License-Identifier: Apache-2.0
"""Which file serves malloc in a running process: the proof that a preload took effect in a program that knows nothing
of us. It follows the list of objects that the program's own loader keeps, in the order in which it looks symbols up;
the first object that defines malloc is the answer, however many allocators come after it. Called by watch; costs less
than a millisecond for a process and some milliseconds once for each library."""

import functools
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hakozuna_lab import LabError

AT_PHDR, AT_PHNUM = 3, 5
PT_DYNAMIC, PT_INTERP, PT_PHDR = 2, 3, 6
DT_DEBUG = 21
RT_CONSISTENT = 0
SHT_DYNSYM = 11
PROGRAM_HEADER = struct.Struct("<II6Q")  # type, flags, offset, vaddr, paddr, filesz, memsz, align
SECTION_HEADER = struct.Struct("<II4QIIQQ")  # name, type, flags, addr, offset, size, link, info, align, entsize
SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
PAIR = struct.Struct("<QQ")
DEBUG = struct.Struct("<iiQQi")  # r_version, padding, r_map, r_brk, r_state
LINK = struct.Struct("<4Q")  # l_addr, l_name, l_ld, l_next


class ProofError(LabError):
    """The process cannot be asked: it is static, another user's, or not a 64-bit program."""


def malloc_file(pid: int) -> Path | None:
    """The file whose malloc the process calls; None when it has ended or its loader is still at work."""
    program = ""
    try:
        program = program_of(pid)
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            order = list(load_order(pid, memory))
        found = next((Path(name) for name in order if defines_malloc(Path(name), *identity(Path(name)))), None)
        if order and not found:
            raise ProofError(f"{program}: none of its libraries defines malloc")
        return found
    except struct.error:
        return None  # what was read is not what it was
    except OSError as error:
        refuse(pid, program, ProofError(f"process {pid} may not be looked at: {error.strerror}"))
    except ProofError as error:
        refuse(pid, program, error)
    return None


def refuse(pid: int, program: str, error: ProofError) -> None:
    """Raises it, unless the process ended or became another program meanwhile."""
    try:
        same = program_of(pid) == program
    except OSError:
        return
    if same:
        raise error


def program_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/exe").readlink())


def load_order(pid: int, memory: BinaryIO) -> Iterator[str]:
    """Paths of the program and its objects in the order of symbol lookup; nothing before the loader is done."""
    dynamic = dynamic_section(pid, memory)
    debug = next((value for tag, value in dynamic if tag == DT_DEBUG), 0)
    if debug == 0:
        return
    _, _, link, _, state = read(memory, debug, DEBUG)
    if state != RT_CONSISTENT:
        return
    while link:
        _, name_at, _, link = read(memory, link, LINK)
        name = read_name(memory, name_at) or program_of(pid)
        if "/" in name:  # not the page of functions that the kernel maps
            yield name


def dynamic_section(pid: int, memory: BinaryIO) -> list[tuple[int, int]]:
    vector = dict(PAIR.iter_unpack(Path(f"/proc/{pid}/auxv").read_bytes()))
    if not vector.get(AT_PHDR):
        return []  # it is ending, or about to become another program
    headers_at = vector[AT_PHDR]
    headers = [read(memory, headers_at + i * PROGRAM_HEADER.size, PROGRAM_HEADER) for i in range(vector[AT_PHNUM])]
    places = {header[0]: header for header in headers}
    if PT_INTERP not in places or PT_DYNAMIC not in places:
        raise ProofError(f"{program_of(pid)} is a static program: nothing can be preloaded")
    moved_by = headers_at - places[PT_PHDR][3]
    memory.seek(moved_by + places[PT_DYNAMIC][3])
    size = places[PT_DYNAMIC][6]
    return list(PAIR.iter_unpack(memory.read(size - size % PAIR.size)))


def read(memory: BinaryIO, address: int, what: struct.Struct) -> tuple[int, ...]:
    memory.seek(address)
    return what.unpack(memory.read(what.size))


def read_name(memory: BinaryIO, address: int) -> str:
    """Byte strings of the loader; read in pieces that cross no page, the next of which may not be there."""
    text = b""
    while b"\0" not in text:
        memory.seek(address + len(text))
        piece = memory.read(4096 - (address + len(text)) % 4096)
        if not piece:
            break
        text += piece
    return os.fsdecode(text.partition(b"\0")[0])


def identity(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError as error:
        raise ProofError(f"{file} is mapped but cannot be read") from error
    return status.st_ino, status.st_mtime_ns


@functools.lru_cache(maxsize=4096)
def defines_malloc(file: Path, inode: int, changed: int) -> bool:
    """Whether an ELF file offers malloc to others. `inode` and `changed` tell its versions apart."""
    content = file.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":
        raise ProofError(f"{file} is not a 64-bit little-endian ELF file")
    (sections_at,) = struct.unpack_from("<Q", content, 40)
    (count,) = struct.unpack_from("<H", content, 60)
    sections = [SECTION_HEADER.unpack_from(content, sections_at + i * SECTION_HEADER.size) for i in range(count)]
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind == SHT_DYNSYM:
            names_at, names_size = sections[link][4:6]
            wanted = name_offsets(content[names_at : names_at + names_size])
            symbols = SYMBOL.iter_unpack(content[offset : offset + size])
            if any(symbol[3] != 0 and symbol[0] in wanted for symbol in symbols):
                return True
    return False


def name_offsets(names: bytes) -> set[int]:
    """Where "malloc" is in a table of names: perhaps as the end of a longer name, which linkers share."""
    found, at = set(), names.find(b"malloc\0")
    while at >= 0:
        found.add(at)
        at = names.find(b"malloc\0", at + 1)
    return found
