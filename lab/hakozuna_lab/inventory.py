# SPDX-License-Identifier: Apache-2.0
"""The header of a file of results. Before anything is measured, every contender serves one short run: what does not
work shall be known before the hours are spent, and which file serves malloc is what the checksum is made of."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hakozuna_lab import LabError, UsageError, machine
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import RESULTS
from hakozuna_lab.runner import Runner
from hakozuna_lab.store import Cell, Header, Results, Selection, StoredContender, append


@dataclass(frozen=True)
class Inventory:
    contenders: list[StoredContender]
    flags: str  # of the program `lane`


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def take(contenders: Sequence[Contender], runner: Runner) -> Inventory:
    lane = next(iter(runner.lanes.values()))
    probe = Cell("lane", lane.lane, lane.threads or 1, lane.modes[0], iterations=1)
    stored, flags = [], ""
    for contender in contenders:
        try:
            record = runner.run(probe, contender)
        except LabError as error:
            raise LabError(f"{contender.name} does not work here: {error}") from error
        served = Path(record["allocator_file"]).resolve()
        flags = record["flags"]
        env = dict(contender.env)
        stored.append(StoredContender(contender.name, str(served), sha256(served), env, contender.version))
    return Inventory(stored, flags)


def begin(
    name: str, contenders: Sequence[Contender], selection: Selection, runner: Runner, command: str, out: Path | None
) -> Results:
    """Writes the header of a new file. The header is read before the first run, the load with it."""
    load_before = machine.load()
    inventory = take(contenders, runner)
    commit, changed = machine.commit()
    identity = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"
    header = Header(
        id=identity,
        commit=commit,
        changed=changed,
        cpu=machine.cpu_name(),
        cpus=machine.usable_cpus(),
        kernel=machine.kernel(),
        thp=machine.thp(),
        governor=machine.governor(),
        load_before=load_before,
        flags=inventory.flags,
        program_sha256=sha256(runner.lane_program),
        contenders=inventory.contenders,
        selection=selection,
        command=command,
    )
    path = out or RESULTS / f"{identity}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise UsageError(f"{path} is there already; go on with it by --resume, or name another file")
    append(path, header)
    return Results(path, header)


def resume(results: Results, runner: Runner) -> list[Contender]:
    """The contenders of an interrupted file, if they still are what they were, and so is the program."""
    header = results.header
    if sha256(runner.lane_program) != header.program_sha256:
        raise LabError(f"{runner.lane_program} is not the one that {results.path} was begun with")
    contenders = [
        Contender(
            stored.name,
            None if Path(stored.library).name.startswith("libc.so") else Path(stored.library),
            stored.env,
            stored.version,
        )
        for stored in header.contenders
    ]
    for now, then in zip(take(contenders, runner).contenders, header.contenders, strict=True):
        if now.sha256 != then.sha256:
            raise LabError(f"{then.library} is not the one that {results.path} was begun with")
    return contenders
