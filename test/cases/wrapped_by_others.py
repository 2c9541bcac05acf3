# SPDX-License-Identifier: Apache-2.0
# Debian's libraries that wrap functions of the C library, before ours: libfaketime, which locks and allocates in its
# wrappers of the clock, and fakeroot.
# prints: ^ok$
"""Runs date(1) and id(1) as users of these libraries do; 77 where there is none of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ours = os.environ.get("LD_PRELOAD", "")
clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def run(command: list[str], **variables: str) -> str:
    """What the command prints; it has five seconds."""
    text = subprocess.run(command, env=clean | variables, stdout=subprocess.PIPE, text=True, timeout=5, check=True)
    return text.stdout.strip()


said = {}
for library in Path("/usr/lib").glob("*/faketime/libfaketime.so.1"):
    preload = f"{library}:{ours}"
    said["date"] = run(["date", "-u", "+%Y"], LD_PRELOAD=preload, FAKETIME="@2001-02-03 04:05:06") == "2001"
if shutil.which("fakeroot") is not None:
    said["id"] = run(["fakeroot", "sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{ours}" id -u']) == "0"
if not said:
    sys.exit(77)
print("ok" if all(said.values()) else said)
