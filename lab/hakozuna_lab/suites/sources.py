# SPDX-License-Identifier: Apache-2.0
"""Gets the sources of a package of the distribution, and builds of them what a suite needs. Called by `prepare` of the
suites; the network's time at first, then nothing. apt gets an index of sources of its own in the cache: that of the
system stays as it is."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab.suites.suite import AbsentError, Ready, Turn

EACH = Path(__file__).with_name("each.py")


@dataclass(frozen=True)
class Sources:
    version: str
    folder: Path


def said(command: Sequence[str], cwd: Path | None = None) -> str:
    """What it writes; nothing when it fails or is not there."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def must(title: str, command: Sequence[str], log: Path, cwd: Path | None = None) -> None:
    """Runs it; AbsentError has the last line that says what is wrong."""
    with log.open("ab") as output:
        output.write(f"--- {' '.join(command)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        except FileNotFoundError:
            raise AbsentError(f"{command[0]} is missing") from None
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        telling = [line for line in lines if re.search(r"(?i)^E: |error|cannot|no such", line)]
        raise AbsentError(f"{title} failed: {(telling or lines)[-1].strip()} (all of it in {log})")


def need_program(name: str) -> str:
    if found := shutil.which(name):
        return found
    raise AbsentError(f"{name} is missing")


def apt_options(cache: Path) -> list[str]:
    """An index of sources beside that of the system, made of what the system's apt knows of packages."""
    apt = cache / "apt"
    index = apt / "sources.list"
    options = [f"Dir::Etc::SourceList={index}", "Dir::Etc::SourceParts=/dev/null", f"Dir::State::Lists={apt}/lists"]
    options += [f"Dir::Cache={apt}"]
    words = [word for option in options for word in ("-o", option)]
    if not (apt / "ready").exists():
        asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
        known = sorted(set(said(asked).splitlines()))
        if not known:
            raise AbsentError("no apt here that knows where its packages come from")
        (apt / "lists/partial").mkdir(parents=True, exist_ok=True)
        (apt / "archives/partial").mkdir(parents=True, exist_ok=True)
        index.write_text("".join(f"deb-src {line}\n" for line in known), encoding="utf-8")
        must("apt-get update", ["apt-get", *words, "update"], apt / "log")
        (apt / "ready").touch()
    return words


def installed_version(package: str) -> str:
    """Of the sources that an installed package was made of."""
    return said(["dpkg-query", "--show", "--showformat=${source:Version}", package])


def debian(cache: Path, source: str, version: str = "") -> Sources:
    """The sources of that package, patched as the distribution builds them; the newest if no version is named."""
    found = [
        path for path in cache.glob(f"{source}_*/tree") if not version or path.parent.name == f"{source}_{version}"
    ]
    if not found:
        options = apt_options(cache)
        folder = cache / f"{source}.part"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        wanted = f"{source}={version}" if version else source
        log = cache / f"{source}.log"
        must("apt-get source", ["apt-get", *options, "source", "--download-only", "--only-source", wanted], log, folder)
        described = next(folder.glob("*.dsc"))
        must("dpkg-source", ["dpkg-source", "--no-check", "-x", described.name, "tree"], log, folder)
        for archive in folder.glob("*.tar.*"):
            archive.unlink()
        told = re.search(r"^Version: (.+)$", described.read_text(encoding="utf-8"), re.MULTILINE)
        named = cache / f"{source}_{told[1] if told else version}"
        folder.rename(named)
        found = [named / "tree"]
    return Sources(found[-1].parent.name.partition("_")[2], found[-1])


def unpacked(cache: Path, package: str, log: Path) -> Path:
    """What is in a package of the distribution, which is not installed."""
    folder = cache / package
    if not folder.exists():
        part = cache / f"{package}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        must("apt-get download", ["apt-get", "download", package], log, part)
        must("dpkg-deb", ["dpkg-deb", "-x", next(part.glob("*.deb")).name, "tree"], log, part)
        (part / "tree").rename(folder)
        shutil.rmtree(part)
    return folder


@dataclass(frozen=True)
class Built:
    """A program that is a test by itself: exit code 0 passed, 77 skipped, anything else failed."""

    name: str
    command: Sequence[str]


def may(command: Sequence[str], log: Path, cwd: Path | None = None) -> bool:
    """Runs what need not succeed."""
    try:
        must("", command, log, cwd)
    except AbsentError:
        return False
    return True


def compiled(folder: Path, jobs: Sequence[tuple[str, Sequence[str]]], log: Path) -> list[Built]:
    """Programs of name and compiler's command, without its -o; why some do not compile here stands in the log."""
    folder.mkdir(parents=True, exist_ok=True)
    built = []
    for name, command in jobs:
        program = folder / name.replace("/", "-")
        if program.exists() or may([*command, "-o", str(program)], log):
            built.append(Built(name, [str(program)]))
    if not built:
        raise AbsentError(f"none of its programs compiles here (why stands in {log})")
    return built


def list_programs(folder: Path, built: Sequence[Built]) -> None:
    """For each.py."""
    text = json.dumps([{"name": one.name, "command": list(one.command)} for one in built], indent=1)
    (folder / "programs.json").write_text(text, encoding="utf-8")


def each(seconds: int) -> Callable[[Ready, Turn], list[str]]:
    """The command of a suite whose tests are programs, of which none may take longer."""

    def command(ready: Ready, turn: Turn) -> list[str]:
        runner = [sys.executable, "-B", str(EACH), "--limit", str(seconds), str(ready.folder / "programs.json")]
        return [*runner, *turn.units]

    return command


# Each in a process of its own, so that one which dies or hangs takes no other along.
ONE_BY_ONE = """
cd "$1" && seconds=$2 runner=$3 && shift 3
for file; do
  echo "--- $file"
  timeout -k 5 $seconds $runner "$file" </dev/null 2>&1; code=$?
  [ $code -eq 0 ] || echo "--- exit code $code"
done
"""


def one_by_one(folder: Path, seconds: int, runner: str, files: Sequence[Path]) -> list[str]:
    """The command that runs each of them in that folder, by that program, and says its name before and a bad end
    behind."""
    return ["sh", "-c", ONE_BY_ONE, "sh", str(folder), str(seconds), runner, *map(str, files)]


def jobs() -> str:
    return str(len(os.sched_getaffinity(0)))
