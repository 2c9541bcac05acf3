# SPDX-License-Identifier: Apache-2.0
"""The order of runs and their repetition. Rounds are outermost, so what an interrupted file holds is a table with fewer
rounds, and after the first round the remaining time is known."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hakozuna_lab import RunError
from hakozuna_lab.contender import Contender
from hakozuna_lab.machine import DISTURBED, CpuTimes, cpu_times, others_share
from hakozuna_lab.rows import is_clean
from hakozuna_lab.store import Cell, Results, Run, append

Measure = Callable[[Cell, Contender], dict[str, Any]]  # makes one run
Clock = Callable[[], CpuTimes]

SCREENING = 3  # rounds after which a setting that another one of the same allocator beat is not run on
ATTEMPTS = 4  # a run that was disturbed or dirty is repeated up to three times, then kept


@dataclass(frozen=True)
class Task:
    cell: Cell
    contender: Contender
    round: int


def tasks(cells: Sequence[Cell], contenders: Sequence[Contender], rounds: range) -> Iterator[Task]:
    """In each round and cell every contender runs once; who begins changes from round to round."""
    for round_number in rounds:
        shift = round_number % len(contenders)
        for cell in cells:
            for contender in [*contenders[shift:], *contenders[:shift]]:
                yield Task(cell, contender, round_number)


@dataclass
class Session:
    """A file of results that is being written. `measure` makes one run; `report` hears of each."""

    results: Results
    measure: Measure
    report: Callable[[Run], None] = lambda run: None
    clock: Clock = cpu_times
    screen: bool = True
    last: dict[tuple[str, str, int], Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for run in self.results.runs:
            self.last[run.cell, run.contender, run.round] = run

    def done(self, task: Task) -> bool:
        """Also for a contender that failed in this cell: it would fail again."""
        earlier = [run for number in range(task.round) if (run := self.last_run(task, number))]
        if any("failed" in run.record for run in earlier):
            return True
        if self.screen and task.round >= SCREENING and self.beaten(task):
            return True
        last = self.last_run(task, task.round)
        return last is not None and not must_repeat(last, any(map(stayed_dirty, earlier)))

    def last_run(self, task: Task, round_number: int) -> Run | None:
        return self.last.get((task.cell.id, task.contender.name, round_number))

    def beaten(self, task: Task) -> bool:
        """In this cell every early run of another setting was faster than each of this one: it will not be the better
        one, which is all that counts of it. Never the contender that is judged."""
        header = self.results.header
        if task.contender.name == header.selection.first:
            return False
        siblings = [one.name for one in header.contenders if one.name.partition("+")[0] == task.contender.base]
        speeds = {name: self.early_speeds(task.cell, name) for name in siblings}
        own = speeds.pop(task.contender.name)
        return bool(own) and any(min(others) > max(own) for others in speeds.values() if others)

    def early_speeds(self, cell: Cell, name: str) -> list[float]:
        """Of the rounds of the screening; none if a run was dirty or failed."""
        runs = [self.last.get((cell.id, name, number)) for number in range(SCREENING)]
        speeds = [float(run.record["ops_per_s"]) for run in runs if run and is_clean(run)]
        return speeds if len(speeds) == SCREENING else []

    def perform(self, task: Task) -> None:
        while not self.done(task):
            last = self.last_run(task, task.round)
            run = attempt(task, last.attempt + 1 if last else 1, self.measure, self.clock)
            append(self.results.path, run)
            self.results.runs.append(run)
            self.last[run.cell, run.contender, run.round] = run
            self.report(run)

    def repeated(self) -> int:
        return sum(run.attempt > 1 for run in self.results.runs)


def attempt(task: Task, number: int, measure: Measure, clock: Clock = cpu_times) -> Run:
    before = clock()
    try:
        record = measure(task.cell, task.contender)
    except RunError as error:
        record = {"failed": str(error)}
    share = others_share(before, clock())
    return Run(
        kind=task.cell.kind,
        cell=task.cell.id,
        contender=task.contender.name,
        round=task.round,
        attempt=number,
        others_share=round(share, 4),
        disturbed=share > DISTURBED,
        record=record,
    )


def stayed_dirty(run: Run) -> bool:
    return bool(run.record.get("dirty")) and run.attempt >= ATTEMPTS


def must_repeat(run: Run, hopeless: bool) -> bool:
    """`hopeless`: an earlier round stayed dirty through all attempts, so this one is not repeated for being dirty."""
    if "failed" in run.record or run.attempt >= ATTEMPTS:
        return False
    return run.disturbed or (bool(run.record.get("dirty")) and not hopeless)
