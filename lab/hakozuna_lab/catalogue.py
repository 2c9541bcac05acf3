# SPDX-License-Identifier: Apache-2.0
"""The lanes, as the program `lane` lists them, and the check that a record is of the lane that was asked for."""

import fnmatch
import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakozuna_lab import LabError, UsageError
from hakozuna_lab.store import Cell

# The order in which a run must have read its memory: idle before the threads are joined, after when they are.
MOMENTS = ["empty", "start", "end", "idle", "after"]


@dataclass(frozen=True)
class Lane:
    """`threads`: 0 if the caller chooses, else what the definition fixes. `guard`: no change may lose on it."""

    lane: str
    family: str
    threads: int
    modes: list[str]
    guard: bool
    definition: dict[str, int | float | str]


Catalogue = Mapping[str, Lane]


def read(program: Path) -> Catalogue:
    try:
        done = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
        return {entry["lane"]: Lane(**entry) for entry in json.loads(done.stdout)}
    except (OSError, subprocess.CalledProcessError, ValueError, TypeError) as error:
        raise LabError(f"{program} --list: {error}") from error


def select(catalogue: Catalogue, patterns: Iterable[str]) -> list[Lane]:
    """Lanes by name, by family, by glob, or `guard` for all guard lanes; in the order of the catalogue."""
    wanted = set()
    for pattern in patterns:
        found = {name for name, lane in catalogue.items() if matches(lane, pattern)}
        if not found:
            families = sorted({lane.family for lane in catalogue.values()})
            raise UsageError(f"no lane '{pattern}'; families: {' '.join(families)}; lanes: {' '.join(catalogue)}")
        wanted |= found
    return [lane for name, lane in catalogue.items() if name in wanted]


def matches(lane: Lane, pattern: str) -> bool:
    return pattern == lane.family or (pattern == "guard" and lane.guard) or fnmatch.fnmatchcase(lane.lane, pattern)


def iterations_key(lane: Lane, mode: str) -> str:
    """Some lanes have a number of iterations of their own for a mode."""
    own = f"iterations_{mode}"
    return own if own in lane.definition else "iterations"


def expected_definition(lane: Lane, cell: Cell) -> dict[str, int | float | str]:
    definition = dict(lane.definition)
    for key, value in (("remote_percent", cell.remote), (iterations_key(lane, cell.mode), cell.iterations)):
        if value is not None:
            definition[key] = value
    return definition


def check(catalogue: Catalogue, cell: Cell, record: Mapping[str, Any]) -> None:
    """A lane that measures something else under this name makes every table wrong at once."""
    lane = catalogue[cell.name]
    expected: dict[str, Any] = {
        "lane": cell.name,
        "family": lane.family,
        "mode": cell.mode,
        "threads": lane.threads or cell.threads,
        "definition": expected_definition(lane, cell),
        "moments": MOMENTS,
    }
    if cell.settle is not None:
        expected["settle_ms"] = cell.settle
    if cell.rest is not None:
        expected["rest_ms"] = cell.rest
    if not cell.touched:
        expected["touched"] = False
    if cell.written:
        expected["written"] = True
    for key, value in expected.items():
        if record.get(key) != value:
            raise LabError(f"{cell.id}: mislabelled lane: {key} is {record.get(key)}, expected {value}")
    if record["rss_peak_kib"] < max(record["rss_idle_kib"], record["rss_after_kib"]):
        raise LabError(f"{cell.id}: wrong moment: the peak is below what was read later")
