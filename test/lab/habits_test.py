# SPDX-License-Identifier: Apache-2.0
"""Habits of writing that make readers stumble become fewer: MOST has the counts of today, which may be lowered."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hakozuna_lab import habits

MOST = {"no noun": 0, "nobody": 0, "begins with Of": 0, "in vain": 0, "told": 0, "look": 0, "long": 0}
MOST_OF_RECORDS = {"no noun": 16, "nobody": 6, "begins with Of": 4, "in vain": 1, "told": 7, "look": 2, "long": 273}


@pytest.mark.parametrize(("texts", "most"), [(habits.pages, MOST), (habits.records, MOST_OF_RECORDS)])
def test_they_become_fewer(texts: Callable[[], Iterator[tuple[str, str]]], most: dict[str, int]) -> None:
    assert {habit: count for habit, count in habits.total_of(texts()).items() if count > most[habit]} == {}


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("It ends. Who frees it waits.", "no noun"),
        ("What is larger goes back.", "no noun"),
        ("A block that nobody has.", "nobody"),
        ("It ends. Of three, one is left.", "begins with Of"),
        ("It waits in vain.", "in vain"),
        ("Memory that cannot be had.", "in vain"),
        ("The purger is told.", "told"),
        ("The thread looks at the list.", "look"),
        (f"It has {'very ' * 25}long sentences.", "long"),
    ],
)
def test_what_they_are(text: str, habit: str) -> None:
    assert habits.habits_in(text)[habit] == 1
    assert habits.habits_in(text).total() == 1


def test_what_is_none() -> None:
    assert habits.habits_in("What is a span? The thread that frees a block returns it.").total() == 0
    assert habits.prose("Text\n```\nWho runs it\n```\n| Who | a cell |\n<!-- Who -->") == "Text\n\n"


def test_rows_of_help_are_sentences_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "launcher"
    row = "asks for a word and a word and a word and a word and a word and a word"
    script.write_text(
        f"cat <<EOF\nusage: hz ask [--word WORD] [--] PROGRAM [ARGS...]\n{26 * ' '}{row}\n       hz ask {row}\n\n"
        f"  --word WORD             {row}\n    --other               {row}\n{26 * ' '}and a word, {row}\nEOF\n",
        encoding="utf-8",
    )
    found = habits.help_of(script)
    assert found.count(row) == 4
    assert "--" not in found
    assert "ARGS" not in found
    assert habits.habits_in(found)["long"] == 1


def test_prose_of_man_pages() -> None:
    page = (
        '.\\" Who reads it.\n.Sh NAME\n.Nm hz_a ,\n.Nd Who has names\n.Sh DESCRIPTION\n.Fn hz_a\ntells it.\n'
        ".It Ev HZ_A\nWhat is left.\n.Dl Who runs it\n"
    )
    assert +habits.habits_in(habits.manual(page)) == {"told": 1, "no noun": 1}


def test_pages_and_help_are_counted() -> None:
    names = [name for name, text in habits.pages() if text]
    assert {"README.md", "doc/protocols.md", "doc/line/hz7.md", "hz", "src/heap/settings/options.cpp"} <= set(names)
    assert {"doc/guides/redis.md", "doc/man/hz.1", "doc/man/hakozuna.3"} <= set(names)
    assert {"doc/decisions/README.md", "doc/results/README.md"} <= {name for name, text in habits.records() if text}
