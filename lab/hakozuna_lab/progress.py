# SPDX-License-Identifier: Apache-2.0
"""What a long measurement shows while it runs: a bar with the remaining time on a terminal, a line per run elsewhere.
It draws between runs only, so that it takes nothing from them."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from hakozuna_lab.schedule import Task
from hakozuna_lab.store import Run
from hakozuna_lab.tables import operations


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min" if minutes else "under a minute"


class Forecast:
    """The remaining time: every cell that has run says what its runs take, the others are taken for average."""

    def __init__(self, todo: Sequence[Task]) -> None:
        self.pending = Counter(task.cell.id for task in todo)
        self.spent: dict[str, float] = {}
        self.count: Counter[str] = Counter()

    def finished(self, cell: str, seconds: float) -> None:
        """One task less; one that took no time was done already and says nothing."""
        self.pending[cell] -= 1
        if seconds:
            self.spent[cell] = self.spent.get(cell, 0.0) + seconds
            self.count[cell] += 1

    def remaining(self) -> float:
        average = sum(self.spent.values()) / max(1, self.count.total())
        means = {cell: self.spent[cell] / self.count[cell] for cell in self.spent}
        return sum(count * means.get(cell, average) for cell, count in self.pending.items())


class Progress:
    def __init__(self, todo: Sequence[Task]) -> None:
        self.total, self.done = len(todo), 0
        self.forecast = Forecast(todo)
        self.began = time.monotonic()
        self.ran = False
        console = Console(stderr=True)
        # What is cut where there is little room is the last run.
        columns = (
            BarColumn(10),
            MofNCompleteColumn(table_column=Column(min_width=len(f"{self.total}/{self.total}"), no_wrap=True)),
            TextColumn("{task.fields[left]}", table_column=Column(min_width=19, no_wrap=True)),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        )
        self.bar = (
            RichProgress(*columns, console=console, auto_refresh=False, expand=True) if console.is_terminal else None
        )
        self.task = self.bar.add_task("", total=self.total, left="") if self.bar else None

    def __enter__(self) -> "Progress":
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bar:
            self.bar.stop()

    def report(self, run: Run) -> None:
        """Called after each attempt."""
        self.ran = True
        text = f"{run.cell} {run.contender}: {outcome(run)}"
        if self.bar and self.task is not None:
            self.bar.update(self.task, description=text)
        else:
            place = ", ".join(filter(None, [f"{self.done + 1} of {self.total}", self.left()]))
            print(f"{text} ({place})", file=sys.stderr, flush=True)

    def finished(self, task: Task) -> None:
        """Called when no further attempt of a task will be made."""
        now = time.monotonic()
        self.forecast.finished(task.cell.id, now - self.began if self.ran else 0.0)
        self.began, self.ran = now, False
        self.done += 1
        if self.bar and self.task is not None:
            self.bar.update(self.task, completed=self.done, left=self.left(), refresh=True)

    def forget(self, tasks: Sequence[Task]) -> None:
        """These will not be needed."""
        self.total -= len(tasks)
        self.forecast.pending.subtract(task.cell.id for task in tasks)
        if self.bar and self.task is not None:
            self.bar.update(self.task, total=self.total, left=self.left(), refresh=True)

    def left(self) -> str:
        return f"{duration(self.forecast.remaining())} left" if self.forecast.spent else ""


def outcome(run: Run) -> str:
    if "failed" in run.record:
        return f"FAILED: {run.record['failed']}"
    marks = [", DIRTY"] * bool(run.record.get("dirty")) + [", disturbed"] * run.disturbed
    return f"{operations(run.record['ops_per_s'])} ops/s{''.join(marks)}"
