# SPDX-License-Identifier: Apache-2.0
"""Compiles a box twice: as it is, which must fail by naming the function that its file name says is missing, and with
-DHZ_COMPLETE, which must work. Called by CTest: reject.py <role>_without_<function>.cpp compiler flags..."""

import os
import re
import subprocess
import sys


def compile_(command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0, done.stderr


def main():
    source, command = sys.argv[1], sys.argv[2:] + [sys.argv[1]]
    function = re.fullmatch(r"\w+_without_(\w+)\.cpp", os.path.basename(source)).group(1)

    accepted, text = compile_(command + ["-DHZ_COMPLETE"])
    if not accepted:
        sys.exit(f"the complete box does not compile, so the other half means nothing:\n{text}")

    accepted, text = compile_(command)
    if accepted:
        sys.exit(f"a box without {function} compiles")
    # As the contract writes it, after a template parameter; the name of the file does not count.
    if not re.search(rf"\b[A-Z]::{function}\b|[A-Z]::Global::{function}\b", text):
        sys.exit(f"the compiler does not name {function}:\n{text}")


main()
