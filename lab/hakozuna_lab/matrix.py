# SPDX-License-Identifier: Apache-2.0
"""What of the tests is built and run where: reads test/matrix.toml, which says how it is to be read, for `hz test`
and, as a program, for CMake. Nothing but python's library is used."""

import re
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakozuna_lab.paths import ROOT

TABLE = ROOT / "test" / "matrix.toml"
TURNS = 3
DAILY = "daily"  # the column that `hz test` runs, of the release preset
ONCE = "once"


@dataclass(frozen=True, order=True)
class Cell:
    """A part and a line, `once` where no line matters."""

    part: str
    line: str

    def __str__(self) -> str:
        return f"{self.part}/{self.line}"


@dataclass(frozen=True)
class Run:
    """What one `hz test` is to run."""

    turn: int  # 1 to TURNS
    changed: tuple[str, ...] = ()  # paths
    everything: bool = False


@dataclass(frozen=True)
class Part:
    name: str
    lines: Mapping[str, tuple[tuple[str, bool], ...]]  # for each preset: the line, and whether by turn
    whole: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    names: re.Pattern[str]
    out: frozenset[str]
    turn: frozenset[str]


@dataclass(frozen=True)
class Matrix:
    parts: Sequence[Part]
    rules: Sequence[Rule]
    turns: Mapping[str, int]  # of lines
    whole: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of presets
    brief: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    share: Mapping[str, int] = field(default_factory=dict)  # of presets, in hundredths of a whole run's time

    def presets(self) -> list[str]:
        return list(self.whole)

    def cells(self, preset: str, run: Run) -> list[Cell]:
        found = []
        for part in self.parts:
            whole = run.everything or touches(run.changed, (*part.whole, *self.whole.get(preset, ())))
            for line, by_turn in part.lines.get(preset, ()):
                if whole or not by_turn or self.turn_of(part.name, line) == run.turn:
                    found.append(Cell(part.name, line))
        return found

    def turn_of(self, part: str, line: str) -> int:
        return self.turns.get(line) or by_name(part)

    def leaves_out(self, preset: str, test: str, run: Run) -> bool:
        """Whether a test that is built is not run, in a run of less than everything."""
        for rule in self.rules:
            if rule.names.search(test) and (
                preset in rule.out or (preset in rule.turn and not self.is_due(preset, test, run))
            ):
                return True
        return False

    def is_due(self, preset: str, test: str, run: Run) -> bool:
        """A test of a part that is itself run by turn has its turn with it."""
        kind, _, rest = test.partition(".")
        line = rest.partition(".")[0]
        for part in self.parts:
            if part.name == kind and (line, True) in part.lines.get(preset, ()):
                return True
        return by_name(test) == run.turn


def by_name(name: str) -> int:
    return zlib.crc32(name.encode()) % TURNS + 1


def touches(changed: Iterable[str], folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders for path in changed)


def spelled_out(words: str, groups: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    """`~core hz7` is hakozuna and secure by turn, and hz7 each time."""
    found = []
    for word in words.split():
        by_turn, name = word.startswith("~"), word.removeprefix("~")
        for line in groups.get(name, name).split():
            found.append((line, by_turn))
    return tuple(found)


def read(file: Path = TABLE) -> Matrix:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    groups: dict[str, str] = table["groups"]
    groups["all"] = f"{groups['core']} {groups['others']}"
    presets: dict[str, dict[str, Any]] = table["presets"]
    columns = {DAILY, *presets}
    parts = []
    for name, row in table["parts"].items():
        lines: dict[str, tuple[tuple[str, bool], ...]] = {}
        for column, words in row.items():
            if column in ("why", "whole"):
                continue
            for preset in groups.get(column, column).split():
                if preset not in columns:
                    raise ValueError(f"{file.name}: part {name}: there is no preset {preset}")
                lines[preset] = spelled_out(words, groups)
        parts.append(Part(name, lines, tuple(row.get("whole", "").split())))
    rules = []
    for row in table["tests"]:
        out, turn = frozenset(row.get("out", "").split()), frozenset(row.get("turn", "").split())
        if not (out or turn) or not row["why"] or not (out | turn) <= columns:
            raise ValueError(f"{file.name}: tests {row['names']}: a place and a reason are wanted")
        rules.append(Rule(re.compile(row["names"]), out, turn))
    return Matrix(
        parts,
        rules,
        {line: int(turn) for turn, names in table["turns"].items() for line in names.split()},
        {name: tuple(row.get("whole", "").split()) for name, row in presets.items()},
        {name: tuple(line for line, _ in spelled_out(row.get("brief", ""), groups)) for name, row in presets.items()},
        {name: row["share"] for name, row in presets.items()},
    )


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def this_run(everything: bool = False) -> Run:
    """Of this commit; without a history the first turn."""
    number = int(git("rev-list", "--count", "HEAD") or 0)
    day_before = int(git("log", "-1", "--format=%ct") or 0) - 24 * 3600
    changed = git("log", f"--since={day_before}", "--name-only", "--format=").split("\n")
    return Run(number % TURNS + 1, tuple(sorted({*changed} - {""})), everything)


def main() -> int:
    """For CMake: the parts of the preset with all lines that they may be built for, as its lists are written."""
    preset = sys.argv[1] if sys.argv[1] in (matrix := read()).presets() else "release"
    print(";".join(map(str, matrix.cells(preset, Run(1, (), everything=True)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
