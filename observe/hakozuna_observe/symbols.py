# SPDX-License-Identifier: Apache-2.0
"""Names for the addresses of stacks: function, file and line, with the frames that were inlined.

Called by prof.py, once for all profiles that it reads. Where a file, or the file of its debugging information, knows
lines of sources, llvm-symbolizer or addr2line is asked, once a file; else, and where there is neither, the file's own
tables of symbols answer. Code that lies in no file has the name that its compiler wrote (perf_map.py). Code without a
name is shown as file and offset. Costs what these programs cost: for a file with much debugging information seconds.
"""

from __future__ import annotations

import bisect
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hakozuna_observe import perf_map
from hakozuna_observe.elf import Image
from hakozuna_observe.process import open_regular
from hakozuna_observe.profile import INTERPRETED, Code, Profile

DEBUG_FILES = Path("/usr/lib/debug/.build-id")
_PATIENCE = 300  # seconds, of a program that is asked
_ASKED = (("llvm-symbolizer", "--output-style=GNU"), ("addr2line",))
_NO_NETWORK = {"DEBUGINFOD_URLS": ""}
_NEARBY = 8  # functions before an address that it may be in: some lie in each other


@dataclass(frozen=True)
class Frame:
    """A function on a stack; `function` is as the sources have it, or file and offset where it is not known."""

    function: str
    file: str = ""
    line: int = 0
    module: str = ""
    is_known: bool = False
    is_interpreted: bool = False  # of a program that an interpreter runs

    @property
    def place(self) -> str:
        """Of the sources; empty where it is not known."""
        return f"{Path(self.file).name}:{self.line}" if self.file and self.line else Path(self.file).name


Named = dict[int, tuple[Frame, ...]]  # by address of a stack; the innermost frame first


class Names:
    """Remembers files, so that each is asked once. `notes` are sentences for the user."""

    def __init__(self, is_asking: bool = True) -> None:
        self.is_asking = is_asking
        self.notes: list[str] = []
        self._build_ids: dict[Path, str] = {}

    def of(self, profiles: Iterable[Profile]) -> list[Named]:
        """One for each."""
        profiles = list(profiles)
        wanted: dict[Path, dict[int, list[tuple[int, int, Code]]]] = {}
        named: list[Named] = []
        for number, profile in enumerate(profiles):
            frames: Named = {}
            compiled: set[int] = set()  # addresses in no file
            starts = [code.start for code in profile.mappings]
            for address in {address for site in profile.sites for address in site.stack}:
                if address >= INTERPRETED:
                    frames[address] = (_interpreted(profile, address),)
                    continue
                # A return address may be the first byte behind its function.
                at = address - 1
                index = bisect.bisect_right(starts, at) - 1
                code = profile.mappings[index] if index >= 0 and at < profile.mappings[index].end else None
                # Of a system that tells no mappings there are addresses, and nothing else.
                frames[address] = (_unnamed(code, at) if starts else Frame(f"{at:#x}"),)
                file = self.file_of(profile, code) if code is not None else None
                if starts and _is_of_no_file(code):
                    compiled.add(address)
                if code is not None and file is not None and self.is_asking:
                    in_file = wanted.setdefault(file, {})
                    in_file.setdefault(at - code.start + code.offset, []).append((number, address, code))
            if self.is_asking:
                for at, name in perf_map.names_of(profile, (address - 1 for address in compiled)).items():
                    frames[at + 1] = (Frame(*perf_map.place_of(name), module="[anon]", is_known=True),)
            named.append(frames)
        for file, offsets in wanted.items():
            self._warn_of_changes(file, {number for places in offsets.values() for number, *_ in places}, profiles)
            code = next(iter(offsets.values()))[0][2]
            for offset, there in self.in_file(file, sorted(offsets), code.path).items():
                for number, address, _ in offsets[offset]:
                    named[number][address] = there
        return named

    @staticmethod
    def file_of(profile: Profile, code: Code) -> Path | None:
        """Where its bytes are to be found now; None if nowhere."""
        if not code.path.startswith("/"):
            return None
        if profile.root is None:
            return None if code.path.endswith(" (deleted)") else Path(code.path)
        if not code.path.endswith(" (deleted)"):
            return profile.root / "root" / code.path.lstrip("/")
        # The kernel still has it: by the mapping, for who may ask, and the program itself for everybody.
        if code.path == profile.program:
            return profile.root / "exe"
        return profile.root / "map_files" / code.text.partition(" ")[0]

    def build_id(self, profile: Profile, code: Code) -> str:
        """Empty if the file has none, or is not there."""
        file = self.file_of(profile, code)
        if file is None:
            return ""
        if file not in self._build_ids:
            try:
                with open_regular(file) as opened:
                    self._build_ids[file] = Image(opened).build_id()
            except (OSError, EOFError, ValueError, MemoryError, struct.error):
                self._build_ids[file] = ""
        return self._build_ids[file]

    def _warn_of_changes(self, file: Path, numbers: set[int], profiles: list[Profile]) -> None:
        for number in numbers:
            profile = profiles[number]
            try:
                changed = file.stat().st_ctime
            except OSError:
                continue
            if profile.root is None and profile.written and changed > profile.written + 1:
                self.notes.append(f"{file} has changed since the profile was written: names in it may be wrong")
                return

    def in_file(self, path: Path, offsets: list[int], module: str = "") -> dict[int, tuple[Frame, ...]]:
        """What lies at these offsets of a file, which the process knew as `module`; nothing if it cannot be read."""
        return self._of_file(path, module or str(path), offsets, Image.address_of)

    def behind_first(self, path: Path, distances: list[int]) -> dict[int, tuple[Frame, ...]]:
        """The same of places that are counted from the first byte of the file that was loaded."""
        return self._of_file(path, str(path), distances, Image.address_behind_first)

    def _of_file(
        self, path: Path, module: str, offsets: list[int], address_of: Callable[[Image, int], int | None]
    ) -> dict[int, tuple[Frame, ...]]:
        try:
            with open_regular(path) as file:
                image = Image(file)
                at = {offset: address for offset in offsets if (address := address_of(image, offset)) is not None}
                functions, beginnings = image.functions(), image.beginnings()
                build_id = image.build_id()
                lines = path if image.has_lines() else None
        except (OSError, EOFError, ValueError, MemoryError, struct.error):
            return {}
        separate = DEBUG_FILES / build_id[:2] / f"{build_id[2:]}.debug"
        if build_id:
            try:
                with open_regular(separate) as file:
                    image = Image(file)
                    functions = image.functions() or functions
                    lines = separate if lines is None and image.has_lines() else lines
            except (OSError, EOFError, ValueError, MemoryError, struct.error):
                pass
        addresses = set(at.values())
        asked = _ask(lines, sorted(addresses)) if lines is not None else {}
        starts = [start for start, *_ in functions]
        bare = {one: name for one in addresses - set(asked) if (name := _function_at(functions, starts, one))}
        plain = demangled(set(bare.values()))
        found = {}
        for offset, address in at.items():
            if address in asked:
                found[offset] = tuple(
                    Frame(function or _nameless(module, beginnings, address), source, line, module, bool(function))
                    for function, source, line in asked[address]
                )
            elif address in bare:
                found[offset] = (Frame(plain[bare[address]], module=module, is_known=True),)
            else:
                found[offset] = (Frame(_nameless(module, beginnings, address), module=module),)
        return found


def _nameless(module: str, beginnings: list[int], address: int) -> str:
    """By where its function begins, where that can be told: so all that it calls is below one name."""
    index = bisect.bisect_right(beginnings, address) - 1
    return f"{_file_name(module)}+{beginnings[index] if index >= 0 else address:#x}"


def _file_name(module: str) -> str:
    return Path(module.removesuffix(" (deleted)")).name


def _interpreted(profile: Profile, number: int) -> Frame:
    function = profile.functions.get(number)
    if function is None:  # the process's table was full
        return Frame("[python]", module="[python]", is_interpreted=True)
    return Frame(function.name, function.file, function.line, "[python]", is_known=True, is_interpreted=True)


_INTERPRETER = re.compile(r"(?:.*/)?(?:libpython|python)[23](?:\.[0-9]+)?[a-z]*(?:\.so[.0-9]*)?(?: \(deleted\))?")


def without_interpreter(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Without what an interpreter does itself for a function that it runs: the function's line stands for it."""
    first = next((number for number, frame in enumerate(frames) if frame.is_interpreted), 0)
    kept = [frame for frame in frames[:first] if not _INTERPRETER.fullmatch(frame.module)]
    return (*kept, *frames[first:])


def _is_of_no_file(code: Code | None) -> bool:
    return code is None or code.path == "" or code.path.startswith("[anon")


def _unnamed(code: Code | None, at: int) -> Frame:
    if code is None:
        return Frame("[unmapped]")
    if code.path == "" or code.path.startswith("[anon"):
        return Frame("[anon]", module="[anon]")
    if not code.path.startswith("/"):  # [vdso] and the like
        return Frame(code.path, module=code.path)
    return Frame(f"{_file_name(code.path)}+{at - code.start + code.offset:#x}", module=code.path)


def _function_at(functions: list[tuple[int, int, str]], starts: list[int], address: int) -> str:
    index = bisect.bisect_right(starts, address) - 1
    for start, size, name in reversed(functions[max(index + 1 - _NEARBY, 0) : index + 1]):
        # Those of an assembler may have no size: they reach to the next.
        if address < start + size or (size == 0 and start == starts[index]):
            return name.partition("@")[0]
    return ""


def _ask(path: Path, addresses: list[int]) -> dict[int, list[tuple[str, str, int]]]:
    """What a program of the system makes of them; nothing where none is installed, or where it fails."""
    asked = "".join(f"{address:#x}\n" for address in addresses)
    for program, *options in _ASKED:
        if shutil.which(program) is None:
            continue
        command = [program, *options, "-f", "-i", "-C", "-a", "-e", str(path)]
        try:
            answer = subprocess.run(
                command,
                input=asked.encode(),
                env=os.environ | _NO_NETWORK,
                capture_output=True,
                timeout=_PATIENCE,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return _answers(answer.stdout.decode("utf-8", "replace").splitlines())
    return {}


def _answers(lines: list[str]) -> dict[int, list[tuple[str, str, int]]]:
    """After each address two lines a frame, function and place; those without a place know nothing that is sure."""
    found: dict[int, list[tuple[str, str, int]]] = {}
    frames: list[tuple[str, str, int]] = []
    at = 0
    while at < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[at]):
            frames = found.setdefault(int(lines[at], 16), [])
            at += 1
            continue
        function, place = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        source, _, rest = place.partition(" (discriminator")[0].rpartition(":")
        number = rest.split(":")[0]
        known = "" if source in ("", "??") else source
        frames.append(
            (
                "" if function == "??" else function.partition("@")[0],
                known,
                int(number) if number.isdigit() and known else 0,
            )
        )
        at += 2
    return {address: frames for address, frames in found.items() if frames and frames[-1][0] and frames[-1][1]}


def demangled(names: set[str]) -> dict[str, str]:
    """As the sources have them, where c++filt or its like is installed."""
    mangled = sorted(name for name in names if name.startswith(("_Z", "_R")) and name.isascii())
    found = {name: name for name in names}
    program = shutil.which("c++filt") or shutil.which("llvm-cxxfilt")
    if not mangled or program is None:
        return found
    try:
        answer = subprocess.run(
            [program], input="\n".join(mangled), capture_output=True, text=True, timeout=_PATIENCE, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return found
    if len(answer) == len(mangled):
        found.update(zip(mangled, answer, strict=True))
    return found


# --- names for people

_LIBRARY = re.compile(r"(std|__gnu_cxx|alloc|hashbrown)::|operator new(\[\])?$")
_LIBRARY_C = frozenset(
    (
        *("malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc"),
        *("pvalloc", "strdup", "__strdup", "strndup", "__strndup"),
    )
)
_OPERATOR = re.compile(
    r"(?<!\w)operator *(\(\)|<<=?|>>=?|<=>|<=?|>=?|->\*?|\"\" *\w+|[^\w\s(<]+|new\b(\[\])?|delete\b(\[\])?)"
)
_ANONYMOUS = "(anonymous namespace)"


def short(name: str) -> str:
    """Without what comes back from it, what its templates were given and what it takes."""
    if name.startswith(("<", "[")) or not name.isascii():
        return name
    text = name.replace(_ANONYMOUS, "{anonymous}")
    kept: list[str] = []
    depth, at = 0, 0
    while at < len(text):
        word = _OPERATOR.match(text, at)
        if word:
            kept.append(word[0].replace(" ", "\0") if depth == 0 else "")
            at = word.end()
            continue
        letter = text[at]
        at += 1
        if letter == "<":
            depth += 1
            while depth == 1 and kept and kept[-1] == " ":
                kept.pop()
        elif letter == ">" and depth > 0:
            depth -= 1
            kept.append("<>" if depth == 0 else "")
        elif depth > 0:
            pass
        elif letter == "{":
            end = text.find("}", at)
            inside = text[at : end if end >= 0 else len(text)]
            kept.append("{" + inside.partition("(")[0] + "}")
            at += len(inside) + 1
        elif letter == "(" and not text.startswith("*", at):  # as Go has it: main.(*Server).serve
            at = _behind(text, at)
            if not text.startswith("::", at):
                break
        else:
            kept.append(letter)
    plain = "".join(kept).strip()
    if depth != 0 or plain in ("", "decltype"):
        return name
    if "operator " not in plain:
        plain = plain.rpartition(" ")[2]
    return plain.replace("\0", " ").replace("{anonymous}", _ANONYMOUS)


def _behind(text: str, at: int) -> int:
    """Where the brackets end that were opened before `at`."""
    depth = 1
    while at < len(text) and depth > 0:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def without_library(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Without what malloc's callers in standard libraries call each other; but the outermost of these stays. A stack
    of an interpreted program begins at the program's own innermost function."""
    for number, frame in enumerate(frames):
        if frame.is_interpreted:
            return frames[number:]
    first = 0
    for number, frame in enumerate(frames):
        if not (_LIBRARY.match(short(frame.function)) or frame.function in _LIBRARY_C):
            first = number
            break
    else:
        return frames
    return frames[max(first - 1, 0) :]
