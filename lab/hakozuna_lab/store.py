# SPDX-License-Identifier: Apache-2.0
"""Stored results: JSON lines in bench/results/, one header, one line per run, one end. A file without an end was
interrupted; a last line that is cut short is left out. doc/lab.md explains every field."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hakozuna_lab import LabError

Kind = Literal["lane", "program"]


@dataclass(frozen=True)
class Cell:
    """One workload in one configuration: what all contenders run. Its id names it in stored results."""

    kind: Kind
    name: str  # of the lane, or "program/case"
    threads: int = 0  # the rest is for lanes
    mode: str = ""
    remote: int | None = None  # None: as the lane defines it
    iterations: int | None = None
    touched: bool = True
    settle: int | None = None  # milliseconds before memory is read idle, and after; None: 50, of servers 2000
    written: bool = False  # blocks, in full
    rest: int | None = None  # milliseconds from the end to when memory is read idle once more; None: it is not

    @property
    def id(self) -> str:
        parts = [self.name] if self.kind == "program" else [self.name, f"T{self.threads}", self.mode]
        if self.remote is not None:
            parts.append(f"R{self.remote}")
        if not self.touched:
            parts.append("untouched")
        if self.written:
            parts.append("written")
        return "/".join(parts if self.settle is None else [*parts, f"settle{self.settle}"])


@dataclass(frozen=True)
class StoredContender:
    name: str
    library: str  # the file that serves malloc, also for the C library
    sha256: str
    env: dict[str, str]
    version: str


@dataclass(frozen=True)
class Selection:
    """What was asked for; enough to go on with an interrupted file. `first` is the contender that is judged."""

    lanes: list[str]
    threads: list[int]
    modes: list[str]
    runs: int
    first: str
    cells: list[Cell]
    seed: int | None = None


@dataclass(frozen=True)
class Header:
    id: str
    commit: str
    changed: bool
    cpu: str
    cpus: int
    kernel: str
    thp: str
    governor: str
    load_before: str
    flags: str  # that the program `lane` was compiled with
    program_sha256: str  # of the program `lane`
    contenders: list[StoredContender]
    selection: Selection
    command: str


@dataclass(frozen=True)
class Run:
    """`record` is what the lane or program said, or {"failed": why}. Of a round's attempts the last one counts."""

    kind: Kind
    cell: str
    contender: str
    round: int
    attempt: int
    others_share: float
    disturbed: bool
    record: dict[str, Any]


@dataclass(frozen=True)
class End:
    load_after: str
    repeated: int


@dataclass
class Results:
    path: Path
    header: Header
    runs: list[Run] = field(default_factory=list)
    end: End | None = None


def append(path: Path, entry: Header | Run | End) -> None:
    """One line, written at once: what is in the file survives whatever happens to the process."""
    line = {"type": type(entry).__name__.lower(), **asdict(entry)}
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def cut_half_line(path: Path) -> None:
    """Before lines are added to an interrupted file: what follows the last newline goes."""
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def parse_header(entry: Mapping[str, Any]) -> Header:
    selection = {**entry["selection"], "cells": [Cell(**cell) for cell in entry["selection"]["cells"]]}
    contenders = [StoredContender(**contender) for contender in entry["contenders"]]
    return Header(**{**entry, "selection": Selection(**selection), "contenders": contenders})


def parse_line(text: str) -> Header | Run | End:
    entry = json.loads(text)
    kind = entry.pop("type")
    if kind == "header":
        return parse_header(entry)
    return Run(**entry) if kind == "run" else End(**entry)


def load(path: Path) -> Results:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    results = None
    # What follows the last newline is empty, or a line that was being written when the process died.
    for number, text in enumerate(lines[:-1], 1):
        try:
            entry = parse_line(text)
        except (ValueError, KeyError, TypeError) as error:
            raise LabError(f"{path}:{number}: not a line of results") from error
        if isinstance(entry, Header):
            results = Results(path, entry)
        elif results is None:
            raise LabError(f"{path}: does not begin with a header")
        elif isinstance(entry, Run):
            results.runs.append(entry)
        else:
            results.end = entry
    if results is None:
        raise LabError(f"{path}: holds no results")
    return results
