# SPDX-License-Identifier: Apache-2.0
"""One run of one contender in one cell: a fresh process, its record, and the proof that the record is what it says.
Called by the schedule."""

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakozuna_lab import LabError, RunError, catalogue
from hakozuna_lab.catalogue import Catalogue
from hakozuna_lab.contender import Contender
from hakozuna_lab.programs.program import Program
from hakozuna_lab.store import Cell

Record = dict[str, Any]
TIMEOUT = 180.0  # seconds; the slowest lane under a peer that works needs a minute


@dataclass(frozen=True)
class Runner:
    lanes: Catalogue
    programs: Mapping[str, Program]
    lane_program: Path
    seed: int | None = None
    timeout: float = TIMEOUT

    def run(self, cell: Cell, contender: Contender) -> Record:
        """Raises RunError if it is the contender that failed, LabError if the run is not what was asked for."""
        if cell.kind == "lane":
            record = self.run_lane(cell, contender)
            catalogue.check(self.lanes, cell, record)
            contender.check(record)
        else:
            record = self.run_program(cell, contender)
        return record

    def run_lane(self, cell: Cell, contender: Contender) -> Record:
        command = [str(self.lane_program), *lane_arguments(self.lanes, cell, self.seed)]
        try:
            done = subprocess.run(
                command,
                env=contender.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=self.timeout,
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(f"no end after {self.timeout:.0f} s") from error
        if done.returncode == 2:
            raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
        if done.returncode != 0:
            raise RunError(f"{ending(done.returncode)}: {done.stderr.strip()[-200:]}")
        if "hz: warning:" in done.stderr:
            raise LabError(f"{contender.name}: {done.stderr.strip()}")
        try:
            record = json.loads(done.stdout)
        except ValueError as error:
            raise LabError(f"{' '.join(command)} under {contender.name}: no record: {done.stdout[:200]!r}") from error
        return dict(record)

    def run_program(self, cell: Cell, contender: Contender) -> Record:
        program = self.programs[cell.name.partition("/")[0]]
        with tempfile.TemporaryDirectory(prefix="hz-lab-") as workdir:
            return program.run(contender, cell.name, Path(workdir), settle=cell.settle)


def lane_arguments(lanes: Catalogue, cell: Cell, seed: int | None) -> list[str]:
    arguments = ["--lane", cell.name, "--mode", cell.mode]
    if not lanes[cell.name].threads:
        arguments += ["--threads", str(cell.threads)]
    for option, value in (
        ("--iterations", cell.iterations),
        ("--remote", cell.remote),
        ("--seed", seed),
        ("--settle", cell.settle),
        ("--rest", cell.rest),
    ):
        if value is not None:
            arguments += [option, str(value)]
    if not cell.touched:
        arguments.append("--untouched")
    if cell.written:
        arguments.append("--written")
    return arguments


def ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    return f"ended by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}"
