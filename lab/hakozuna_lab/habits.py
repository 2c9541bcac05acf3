# SPDX-License-Identifier: Apache-2.0
"""Counts habits of writing that make readers stumble: in README, in doc/, in man pages and in the help of knobs and
commands; and by themselves in the records, which are decisions and results. python -m hakozuna_lab.habits prints the
pages that have the most. test/lab/habits_test.py holds the counts, which may fall. Tables and code are left out."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hakozuna_lab.paths import ROOT

LONG = 25  # words of a sentence
BEGIN = r"(?:(?<=[.:;] )|(?<=^)|(?<=\n\n)|(?<=- )|(?<=\*\* ))"
HABITS = {
    "no noun": re.compile(rf"{BEGIN}(?:Who|What|Whoever|Whatever) (?![^.?!]*\?)"),
    "nobody": re.compile(r"\b(?:some|no|any|every)body\b|\bwhoever\b", re.IGNORECASE),
    "begins with Of": re.compile(rf"{BEGIN}Of (?!the |all )"),
    "in vain": re.compile(r"\bin vain\b|\bfor ever\b|\b(?:can|cannot|to) be had\b", re.IGNORECASE),
    "told": re.compile(r"\b(?:told|tells)\b", re.IGNORECASE),
    "look": re.compile(r"\blooks? (?:at|for|into|whether)\b", re.IGNORECASE),
}

SYNOPSIS = re.compile(r"^(?:usage:|      ) hz .*?(?:  +|$)", re.MULTILINE)
ROW = re.compile(r"^ {2,4}(?=\S)(?:\S.*?  +)?", re.MULTILINE)
LISTS = re.compile(r"^\.Sh (?:NAME|SYNOPSIS)\n.*?(?=^\.Sh )|^\.\\\".*?$", re.MULTILINE | re.DOTALL)
BREAK = re.compile(r"^\.(?:Sh|Ss|Pp|It|Bl|El|Bd|Ed|Dl|Dd|Dt|Os)\b.*$", re.MULTILINE)
MACRO = re.compile(r"^\.[A-Z][a-z] ?", re.MULTILINE)


def in_folders(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).glob("*.md"))


def records() -> Iterator[tuple[str, str]]:
    """Names and prose of decisions and results."""
    for file in in_folders("doc/decisions", "doc/results"):
        yield str(file.relative_to(ROOT)), prose(file.read_text(encoding="utf-8"))


def pages() -> Iterator[tuple[str, str]]:
    """Names and prose of all else."""
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    for file in files + in_folders("doc", "doc/guides", "doc/line", "doc/box"):
        yield str(file.relative_to(ROOT)), prose(file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "doc/man").iterdir()):
        yield str(file.relative_to(ROOT)), manual(file.read_text(encoding="utf-8"))
    for name in (
        "src/heap/settings/options.cpp",
        "hz",
        "observe/hakozuna_observe/__main__.py",
        "lab/hakozuna_lab/cli.py",
    ):
        yield name, help_of(ROOT / name)


def prose(text: str) -> str:
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))


def manual(text: str) -> str:
    """The prose of a page in mdoc, without its lists of names; a tag, an example and a title are breaks."""
    return MACRO.sub("", BREAK.sub("\n", LISTS.sub("", text)))


def help_of(file: Path) -> str:
    """What it says to users: its strings; of a shell script, its texts between EOF lines, without synopses and names of
    options. Each row of options is a paragraph."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == "":
        shown = "\n\n".join(re.findall(r"<<EOF\n(.*?)\nEOF\n", text, re.DOTALL))
        return ROW.sub("\n", SYNOPSIS.sub("\n", shown))
    return "\n\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', text))


def habits_in(text: str) -> Counter[str]:
    found = Counter({name: len(habit.findall(text)) for name, habit in HABITS.items()})
    paragraphs = re.split(r"\n\s*\n|\n- ", text)
    sentences = (one for part in paragraphs for one in re.split(r"(?<=[.!?]) ", part.replace("\n", " ")))
    found["long"] = sum(len(re.findall(r"[\w`'/-]+", one)) > LONG for one in sentences)
    return found


def total_of(texts: Iterator[tuple[str, str]]) -> Counter[str]:
    return sum((habits_in(text) for _, text in texts), Counter[str]())


def main() -> None:
    for texts in (records, pages):
        rows = [(name, habits_in(text)) for name, text in texts()]
        for name, found in sorted(rows, key=lambda row: -row[1].total()):
            if found.total():
                print(f"{found.total():>4}  {name}: {', '.join(f'{habit} {n}' for habit, n in found.items() if n)}")
        total = total_of(texts())
        print(f"{total.total():>4}  {texts.__name__}: {dict(total)}")


if __name__ == "__main__":
    main()
