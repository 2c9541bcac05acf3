# SPDX-License-Identifier: Apache-2.0
"""run.py SOURCE PROGRAM [--wrapper=LIBRARY] [--plugin=LIBRARY] [--direct] LINE=LIBRARY...: runs a case under each line,
and fails if one of them does not what the first comment lines of SOURCE call right. These may say:

  run: [NAME=VALUE...] [ARGUMENT...]   one run, with these variables; several such lines are several runs
  lines: NAME...                       the lines it is for; all if there is none
  prints: REGEX                        found in what it writes to stdout or stderr
  exits: NUMBER                        its exit code, 0 if nothing is said; -6 for SIGABRT
  seconds: NUMBER                      the time that one run may take; 20 if nothing is said
  alone                                the run without us is not made

With --direct each LIBRARY is a plugin with that line inside: the program's first argument, and not preloaded.
The program is first run without us, and the case is skipped if that fails. A program that exits with 77 is skipped."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def directives(source: Path) -> dict[str, list[str]]:
    """The words of the comment lines at the top, by their keys."""
    found: dict[str, list[str]] = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        comment = re.match(r"^(?://|#) ?(.*)$", line)
        if comment is None:
            break
        said = re.match(r"^(run|lines|prints|exits|seconds|alone)(?:: ?(.*))?$", comment[1])
        if said:
            found.setdefault(said[1], []).append(said[2] or "")
    return found


def attempt(program: list[str], run: str, preloaded: list[str], said: dict[str, list[str]]) -> tuple[int, str]:
    """The exit code of one run, or 77; and what is wrong with it, or nothing."""
    words = shlex.split(run)
    variables = dict(word.split("=", 1) for word in words if re.match(r"^[A-Z_]+=", word))
    arguments = [word for word in words if not re.match(r"^[A-Z_]+=", word)]
    # By env(1): what hangs at its start hangs in no process but its own.
    settings = [f"{name}={value}" for name, value in variables.items()]
    if preloaded:
        settings.append("LD_PRELOAD=" + ":".join(preloaded))
    seconds = float(said.get("seconds", ["20"])[0])
    command = ["env", *settings, *program, *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HZ_")}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=clean,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return 1, f"no end within {seconds:g} s\n{(late.output or b'').decode(errors='replace')}"
    output = done.stdout.decode(errors="replace")
    if done.returncode == SKIPPED:
        return SKIPPED, output
    wrong = []
    expected = int(said.get("exits", ["0"])[0])
    if done.returncode != expected:
        wrong.append(f"exit code {done.returncode}, not {expected}")
    wrong += [f"prints nothing like {regex}" for regex in said.get("prints", []) if not re.search(regex, output)]
    return done.returncode, "\n".join([*wrong, output]) if wrong else ""


def main(arguments: list[str]) -> int:
    source, program, *rest = arguments
    direct = "--direct" in rest
    options = dict(word[2:].split("=", 1) for word in rest if word.startswith("--") and "=" in word)
    lines = dict(word.split("=", 1) for word in rest if not word.startswith("--"))
    said = directives(Path(source))
    command = [sys.executable, program] if program.endswith(".py") else [program]
    command += [options["plugin"]] if "plugin" in options else []
    before = [options["wrapper"]] if "wrapper" in options else []
    chosen = " ".join(said.get("lines", [])).split()
    runs = said.get("run", [""])
    failed = 0
    if "alone" not in said and not direct:
        for run in runs:
            code, wrong = attempt(command, run, before, said)
            if wrong:
                print(f"skipped: without us: {run}: {wrong}")
                return SKIPPED
    for line, library in lines.items():
        if chosen and line not in chosen:
            continue
        for run in runs:
            under = ([*command, library], before) if direct else (command, [*before, library])
            code, wrong = attempt(under[0], run, under[1], said)
            if code == SKIPPED:
                print(f"skipped: {wrong}")
                return SKIPPED
            if wrong:
                failed += 1
                print(f"{line}: {Path(source).name} {run}: {wrong}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
