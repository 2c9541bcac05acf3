# SPDX-License-Identifier: Apache-2.0
#
# abi.py BASELINE LIBRARY HEADERS: whether a program that was linked with what BASELINE describes (what abidw wrote, or a
# library) can use LIBRARY: no name is gone, no signature and no public type is another; names may have come. Of
# libabigail's abidiff. Called by CTest, once per line; package.abi-change.* show what passes and what does not. Takes a
# third of a second. To write a baseline, which is done for a release (doc/releases.md):
#   abi.py --write BASELINE LIBRARY HEADERS
import shutil
import subprocess
import sys
from pathlib import Path

SKIPPED = 77  # SKIP_RETURN_CODE
NOTHING_FOUND = 0
TAIL = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- What programs may be linked with, as abi.py wrote it for a release; every later library is compared with it. -->
"""


def options(headers, *suffix):
    """What headers do not show is nobody's business."""
    return [f"--headers-dir{''.join(suffix)}", headers, "--drop-private-types", "--exported-interfaces-only"]


def write(baseline, library, headers):
    command = ["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-parameter-names",
               "--no-write-default-sizes", *options(headers), library]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        Path(baseline).write_text(done.stdout + TAIL, encoding="utf-8")
    return done.returncode


def compare(baseline, library, headers):
    names = ["--ignore-soname", "--no-architecture", "--no-added-syms"]
    return subprocess.run(["abidiff", *names, *options(headers, "2"), baseline, library], check=False).returncode


def main(*arguments):
    if shutil.which("abidiff") is None:
        print("abidiff is not installed (Debian: abigail-tools)")
        return SKIPPED
    if arguments[0] == "--write":
        return write(*arguments[1:])
    if compare(*arguments) == NOTHING_FOUND:
        return 0
    print(f"refused: programs that know {arguments[0]} cannot use {arguments[1]}")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
