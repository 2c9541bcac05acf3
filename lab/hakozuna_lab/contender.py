# SPDX-License-Identifier: Apache-2.0
"""A contender: an allocator with a name, a library to preload and settings. Used by everything that starts a program to
be measured."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hakozuna_lab import LabError, UsageError
from hakozuna_lab.paths import BUILD, ROOT

# Settings of the caller's shell that would change one contender behind the table's back.
TUNING_PREFIXES = (
    "GLIBC_TUNABLES",
    "HZ_",
    "JE_MALLOC_",
    "LD_PRELOAD",
    "MALLOC_",
    "MIMALLOC_",
    "RPMALLOC_",
    "SCUDO_",
    "SNMALLOC_",
    "TCMALLOC_",
)


@dataclass(frozen=True)
class Contender:
    """`name` is unique in a comparison. "base+setting" is the allocator "base" in a documented setting of its own."""

    name: str
    library: Path | None  # None: the C library
    env: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    @property
    def base(self) -> str:
        return self.name.partition("+")[0]

    def environment(self) -> dict[str, str]:
        """What a program to be measured is started with: the caller's environment without tuning, and ours."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(TUNING_PREFIXES)}
        if self.library:
            env["LD_PRELOAD"] = str(self.library)
        return env | dict(self.env)

    def check(self, record: Mapping[str, Any]) -> None:
        """The probe in the record must name the library that was asked for."""
        served = Path(record["allocator_file"]).resolve()
        right = served == self.library.resolve() if self.library else served.name.startswith("libc.so")
        if not right:
            asked = self.library or "the C library"
            raise LabError(f"{self.name}: asked for {asked}, but malloc came from {served}")


def parse_contender(text: str) -> Contender:
    """NAME=LIBRARY, as --peer has it; a library of this name is looked for nowhere else."""
    name, given, path = text.partition("=")
    library = Path(path).resolve()
    if not name or not given or not library.is_file():
        raise UsageError(f"{text}: expected NAME=LIBRARY with a library that exists")
    if set(str(library)) & set(" :"):
        raise UsageError(f"LD_PRELOAD cannot name a path with a space or a colon: {library}")
    return Contender(name, library)


def line_names() -> list[str]:
    """Our lines, the default one first, as `hz` reads them from CMakeLists.txt."""
    return os.environ.get("HZ_LAB_LINES", "").split()


def find_line(name: str) -> Contender:
    """Returns the line of that name, or `je`, the default line with jemalloc's functions."""
    library = BUILD / f"libhakozuna-{name}.so"
    if name not in (*line_names(), "je"):
        raise UsageError(f"there is no line '{name}'; the lines are: {' '.join(line_names())}")
    if not library.is_file():
        raise LabError(f"{library} is not built")
    return Contender(name, library)


def parse_setting(text: str) -> tuple[str, str]:
    """Returns the variable and the value of key=value. Errors: UsageError if doc/knobs.md has no such key."""
    key, given, value = text.partition("=")
    known = re.findall(r"^\| `(HZ_[A-Z_]+)` \|", (ROOT / "doc/knobs.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not given or f"HZ_{key.upper()}" not in known:
        keys = " ".join(name.removeprefix("HZ_").lower() for name in known)
        raise UsageError(f"--set {text}: expected key=value, with a key of doc/knobs.md: {keys}")
    return f"HZ_{key.upper()}", value


def with_settings(contenders: Iterable[Contender], settings: Iterable[str]) -> list[Contender]:
    """Applies NAME=KEY=VALUE settings to the contenders that they name; refuses a name twice."""
    by_name = {}
    for contender in contenders:
        if contender.name in by_name:
            raise UsageError(f"two contenders have the name {contender.name}")
        by_name[contender.name] = contender
    for text in settings:
        name, _, setting = text.partition("=")
        key, given, value = setting.partition("=")
        if name not in by_name or not given:
            raise UsageError(f"--env {text}: expected CONTENDER=KEY=VALUE with a contender of this comparison")
        by_name[name] = replace(by_name[name], env={**by_name[name].env, key: value})
    return list(by_name.values())
