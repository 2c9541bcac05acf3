# SPDX-License-Identifier: Apache-2.0
"""Messages have one form: `hz: error|warning: SUBJECT: what happened`, or `hz: ` and news. From the sources."""

import re
from pathlib import Path

import pytest
from hakozuna_lab.paths import ROOT

CPP = sorted(file for file in (ROOT / "src").rglob("*.?pp"))
PYTHON = [
    file
    for folder in ("observe/hakozuna_observe", "lab/hakozuna_lab", "package/python", "test/preload")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
LITERAL = re.compile(r'"(hz(?::| [a-z]+:)(?:[^"\\\n]|\\.)*)"')
# What may follow the prefix: a kind, a line of statistics or of a report, or news: a small letter or a value.
FORM = re.compile(r"hz: (?:(?:error|warning|fatal): |stats |guarded |called |noticed |[a-z{(<]|$)")
CAPITAL_OR_FULL_STOP = re.compile(r"^[A-Z][a-z]|[^.]\.$")


def literals(files: list[Path]) -> list[tuple[str, str]]:
    return [
        (file.relative_to(ROOT).as_posix(), text)
        for file in files
        for text in LITERAL.findall(file.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("files", [CPP, PYTHON], ids=["C++", "Python"])
def test_messages_have_the_form(files: list[Path]) -> None:
    found = literals(files)
    assert len(found) > 15
    assert [one for one in found if not FORM.match(one[1])] == []


def test_those_of_the_launcher() -> None:
    text = (ROOT / "hz").read_text(encoding="utf-8")
    found = re.findall(r'\b(?:say|error|fail|misuse|log_fail) "((?:[^"\\]|\\.)*)"', text)
    assert len(found) > 50
    assert [one for one in found if re.match(r"hz( [a-z]+)?:", one) or CAPITAL_OR_FULL_STOP.search(one)] == []


def test_help_of_knobs_begins_with_no_question() -> None:
    """Nor does it with `whether`, which leaves open what the value 1 does."""
    text = (ROOT / "src/heap/settings/options.cpp").read_text(encoding="utf-8")
    rows = re.findall(r'\{"[a-z_]+", "HZ_[A-Z_]+", (?:"[^"]*"\s*)+,\s*"((?:[^"\\]|\\.)*)', text)
    assert len(rows) > 20
    assert [one for one in rows if one.startswith("whether")] == []
