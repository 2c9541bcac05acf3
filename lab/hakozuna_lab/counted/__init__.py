# SPDX-License-Identifier: Apache-2.0
"""The programs of `hz bench --count`: each has one thread, grows, works and ends within a second. Their inputs are
generated, the same each time. Programs whose work depends on addresses are unsuitable: a solver (z3) took 490, 533 and
669 million instructions with the same library."""

import json
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hakozuna_lab.programs.program import Job, Program, Record, find, first_line, measure_to_end, served_env

HERE = Path(__file__).parent
WORDS = 30_000


def write_inputs(folder: Path) -> None:
    dice = random.Random(1)
    words = [f"w{dice.randrange(4000)}" for _ in range(WORDS)]
    lines = (" ".join(words[i : i + 8]) for i in range(0, WORDS, 8))
    (folder / "words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [
        {"id": i, "name": f"n{dice.randrange(9999)}", "tags": dice.sample(words, dice.randrange(6)), "v": dice.random()}
        for i in range(3000)
    ]
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    parts = (
        f'<part id="{i}" kind="{words[i]}"><name>{words[i + 1] * dice.randrange(1, 9)}</name>'
        f"<text>{words[i + 2]}</text></part>\n"
        for i in range(12_000)
    )
    (folder / "parts.xml").write_text(f"<parts>{''.join(parts)}</parts>", encoding="utf-8")
    edges = (f"n{dice.randrange(90)} -> n{dice.randrange(90)};\n" for _ in range(160))
    (folder / "graph.dot").write_text(f"digraph g {{\n{''.join(edges)}}}\n", encoding="utf-8")


@dataclass(frozen=True)
class Command:
    words: Sequence[str]
    env: Mapping[str, str]
    stdin: str


@dataclass(frozen=True)
class Counted:
    """`arguments` and `stdin` that are names of files in this folder stand for their paths; write_inputs() makes the
    other files."""

    name: str
    arguments: Sequence[str]
    env: Callable[[], Mapping[str, str]] = dict
    stdin: str = os.devnull
    executable: Callable[[], str] | None = None

    def command(self) -> Command:
        scripts = {path.name: str(path) for path in HERE.iterdir()}
        first = self.executable() if self.executable else find(self.name)
        words = [first, *(scripts.get(word, word) for word in self.arguments)]
        return Command(words, self.env(), scripts.get(self.stdin, self.stdin))

    @property
    def program(self) -> Program:
        """Returns the program as the lab runs others: without callgrind, with its peak and the proof of its malloc."""
        return Program(self.name, ("once",), (self.name, "time"), partial(version, self.name), self.once)

    def once(self, job: Job) -> Record:
        write_inputs(job.workdir)
        command = self.command()
        with Path(command.stdin).open("rb") as stdin:
            return measure_to_end(job, command.words, 1, env={**served_env(job), **command.env}, stdin=stdin)


def version(name: str) -> str:
    options = {"dot": "-V", "lua5.4": "-v", "perl": "-V:version"}
    said = first_line(find(name), options.get(name, "--version")).replace(find(name), "")
    number = re.search(r"\d+(\.\d+)+|\d{4,}", said)
    return number[0] if number else said


def r_home() -> str:
    return first_line(find("R"), "RHOME")


def r_env() -> Mapping[str, str]:
    return {"R_HOME": r_home(), "LD_LIBRARY_PATH": f"{r_home()}/lib"}


COUNTED: Mapping[str, Counted] = {
    one.name: one
    for one in (
        Counted("perl", ("followers.pl", "words.txt"), lambda: {"PERL_HASH_SEED": "0"}),
        Counted("lua5.4", ("followers.lua", "words.txt")),
        Counted("ruby", ("followers.rb", "words.txt")),
        Counted(
            "python3",
            ("followers.py", "words.txt", "rows.json"),
            lambda: {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"},
        ),
        Counted("gawk", ("-f", "followers.awk", "words.txt")),
        Counted("sqlite3", ("-batch", "-bail", ":memory:"), stdin="table.sql"),
        Counted("xmllint", ("--format", "--output", os.devnull, "parts.xml")),
        Counted("jq", ("-c", "group_by(.name) | map({n: .[0].name, t: map(.tags) | add}) | length", "rows.json")),
        Counted("dot", ("-Tsvg", "-o", os.devnull, "graph.dot")),
        Counted("swipl", ("lists.prolog",)),
        Counted(
            "R",
            ("--vanilla", "--no-echo", "-f", "frames.R"),
            r_env,
            executable=lambda: f"{r_home()}/bin/exec/R",
        ),
        Counted("g++", ("-std=c++17", "-fsyntax-only", "nested.cpp")),
    )
}
