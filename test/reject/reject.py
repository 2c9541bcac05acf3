# SPDX-License-Identifier: Apache-2.0
"""Compiles a box or a line as it is, which must fail for the reason that is expected of it, and with -DHZ_COMPLETE,
which must work. Called by CTest: reject.py FILE.cpp compiler flags...

<role>_without_<function>.cpp   the compiler names the function
switch_without_<value>.cpp      the compiler names the value of an enumeration
line_<what is wrong>.cpp        the compiler says what the file says after "// says: "

reject.py --complete FOLDER compiler flags... compiles all lines of a folder with -DHZ_COMPLETE, at once: each brings the
whole heap.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def compile_(command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0, done.stderr


def expected(source):
    """What the compiler has to say, as a pattern and in words."""
    if source.name.startswith("line_"):
        says = re.search(r"^// says: (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)[1]
        # As a static assertion that failed: its text stands in the source that the compiler quotes, too.
        return rf"static.assert[^\n]*{re.escape(says)}", says
    function = re.fullmatch(r"\w+_without_(\w+)", source.stem)[1]
    if source.name.startswith("switch_"):
        return rf"enumeration value '{function}' not handled", function
    # As the contract writes it, after a template parameter; the name of the file does not count.
    return rf"\b[A-Z]::{function}\b|[A-Z]::Global::{function}\b", function


def complete_lines(folder, command):
    """Each has the name Line, and a file of its own."""
    text = "#define HZ_COMPLETE\n"
    for source in sorted(folder.resolve().glob("line_*.cpp")):
        text += f'#define Line {source.stem}\n#include "{source}"\n#undef Line\n'
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as all_lines:
        all_lines.write(text)
        all_lines.flush()
        accepted, said = compile_([*command, all_lines.name])
    return None if accepted else f"what is complete does not compile, so the others mean nothing:\n{said}"


def main():
    if sys.argv[1] == "--complete":
        sys.exit(complete_lines(Path(sys.argv[2]), sys.argv[3:]))
    source, command = Path(sys.argv[1]), sys.argv[2:] + [sys.argv[1]]
    pattern, words = expected(source)

    if not source.name.startswith("line_"):
        accepted, text = compile_(command + ["-DHZ_COMPLETE"])
        if not accepted:
            sys.exit(f"what is complete does not compile, so the other half means nothing:\n{text}")

    accepted, text = compile_(command)
    if accepted:
        sys.exit(f"compiles, although: {words}")
    if not re.search(pattern, text):
        sys.exit(f"the compiler does not say: {words}\n{text}")


main()
