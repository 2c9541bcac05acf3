# SPDX-License-Identifier: Apache-2.0
"""Runs programs that are tests by themselves, one after the other, each in an empty folder; says in automake's words
how each ended. Called by `hz suites` with its environment, preload included. Needs nothing but Python's own library."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77


def outcome(command: list[str], seconds: float) -> str:
    """PASS, SKIP, or FAIL and how. What it leaves running ends with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if code is None:
            process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    if code == 0:
        complaint = next((line for line in said.splitlines() if line.startswith("hz: ")), "")
        return f"PASS{': ' + complaint if complaint else ''}"
    if code == SKIP:
        return "SKIP"
    print(said[-2000:])
    return "FAIL: " + (f"no end after {seconds:.0f} s" if code is None else f"exit code {code}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("programs", type=Path)
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args()
    failed = False
    for program in json.loads(wanted.programs.read_text(encoding="utf-8")):
        if wanted.names and program["name"] not in wanted.names:
            continue
        word, _, reason = outcome(program["command"], wanted.limit).partition(": ")
        print(f"{word}: {program['name']}" + (f"\n  {reason}" if reason else ""), flush=True)
        failed = failed or word == "FAIL"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
