# SPDX-License-Identifier: Apache-2.0
"""Hakozuna, a drop-in memory allocator, for Python: where its libraries are, and how to run a program on one. The wheel
has what `cmake --install` installs, in a folder of this package; what runs a program is its launcher `hz`."""

import os
import re
import sys
from pathlib import Path
from typing import NoReturn

_INSTALLED = Path(__file__).resolve().parent / "installed"


def _fact(name: str) -> str:
    """What the launcher reads, too."""
    text = (_INSTALLED / "share" / "hakozuna" / "installed.sh").read_text(encoding="utf-8")
    found = re.search(rf"^installed_{name}='([^']*)'", text, re.MULTILINE)
    assert found, f"installed.sh does not say {name}"
    return found[1]


def lines() -> list[str]:
    """The lines that there are a library of, the default one first."""
    return _fact("lines").split()


def library_path(line: str = "") -> str:
    """The shared library of a line, or of the default one: what LD_PRELOAD wants."""
    known = lines()
    if line and line not in known:
        raise ValueError(f"there is no line {line!r}; the lines are: {' '.join(known)}")
    return str(_INSTALLED / "lib" / f"libhakozuna-{line or known[0]}{_fact('suffix')}")


def launch(*words: str) -> NoReturn:
    """Becomes `hz WORDS...`."""
    hz = str(_INSTALLED / "bin" / "hz")
    os.execv("/bin/sh", ["sh", hz, *words])


def main() -> NoReturn:
    """The command `hakozuna`, which is `hz` under another name."""
    launch(*sys.argv[1:])
