# SPDX-License-Identifier: Apache-2.0
"""What pages say of the code is there: names and paths in backquotes, commands of hz and their options, knobs and what
can be done with them, error codes, boxes and lines; and the glossary is short. From the sources, without a build."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hakozuna_lab.paths import ROOT

DOC = ROOT / "doc"
FOLDERS = ("src", "include", "test", "bench", "lab", "observe", "site", "package", "cmake", "debian")
# Pages that speak of other allocators, other systems, or of names as they were.
FOREIGN = ("jemalloc.md", "migrate.md", "peers.md", "platforms.md")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(page for folder in ("", "box", "line", "guides") for page in (DOC / folder).glob("*.md"))
# Names that others define: variables of tools, system calls that only the page on them names, forms of files.
OTHERS = {"LLVM_PROFILE_FILE", "PR_SET_TSC", "capset", "libhakozuna1", "manylinux_2_34", "mlock", "TGZ"}
CODE = re.compile(r"`([^`\n]+)`")
MOST_WORDS = 40


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```[^\n]*\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)


def row_names(page: str, title: str) -> list[str]:
    """What stands in backquotes in the first cells of the table behind a title."""
    table = text_of(DOC / page).split(title)[1]
    lines = table[table.index("\n|---") :].split("\n")[2:]
    rows = lines[: next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    return [name for row in rows for name in CODE.findall(row.split("|")[1])]


@cache
def words_of_the_tree() -> set[str]:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [ROOT / name for name in ("hz", "CMakeLists.txt", "CMakePresets.json", "pyproject.toml", "Containerfile")]
    found: set[str] = set()
    for file in files:
        try:
            found.update(re.findall(r"\w+", text_of(file)))
        except UnicodeDecodeError:
            continue
    return found


OURS = [page for page in PAGES if page.name not in FOREIGN and page.parent.name != "guides"]


@pytest.mark.parametrize("page", OURS, ids=lambda page: page.stem)
def test_names_in_backquotes_are_in_the_tree(page: Path) -> None:
    names = {word for code in CODE.findall(prose(page)) if re.fullmatch(r"[\w:]+(\(\))?", code)
             for word in re.findall(r"\w+", code) if not word.isdigit()}  # fmt: skip
    assert sorted(names - words_of_the_tree() - OTHERS) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_paths_in_backquotes_are_in_the_tree(page: Path) -> None:
    """From the root, or from src/."""
    pattern = re.compile(
        rf"(?:{'|'.join(FOLDERS)}|doc|base|os|box|heap|line|export)/[\w./-]+\.(?:hpp|cpp|h|py|toml|cmake|md)"
    )
    paths = {code for code in CODE.findall(prose(page)) if pattern.fullmatch(code)}
    assert sorted(path for path in paths if not ((ROOT / path).exists() or (ROOT / "src" / path).exists())) == []


@cache
def help_of(command: str) -> str:
    """`hz help` and the command's own, of which those of the lab need its packages."""
    if command in ("bench", "ab", "report", "peers", "scale", "suites"):
        return text_of(ROOT / "lab/hakozuna_lab/cli.py")
    words = [str(ROOT / "hz"), *((command, "--help") if command else ("help",))]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def commands() -> set[str]:
    words = [str(ROOT / "hz"), "completion", "words", ""]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def said_of_hz() -> Iterator[tuple[str, str, list[str]]]:
    """Page, command and its options, of fenced blocks and of code in the prose; those behind -- are the program's."""
    for page in PAGES:
        for code in [line for block in blocks(page) for line in block.splitlines()] + CODE.findall(prose(page)):
            for command, rest in re.findall(r"(?:^|[;|&(] ?|\$ )(?:\./)?hz ([a-z]+)\b([^;|&#]*)", code):
                ours = re.split(r" -- | \./| [A-Z]{4,}\b", f"{rest} ", maxsplit=1)[0]
                yield page.name, command, re.findall(r"(?<![\w-])--([a-z][a-z-]*)", ours)


def test_commands_of_hz_are_there_with_their_options() -> None:
    known = commands() | {"for"}  # for-checks is CI's
    known |= set(re.findall(r'"hz (\w+)", gdb\.', text_of(ROOT / "package/gdb/hakozuna-gdb.py")))
    unknown: list[tuple[str, ...]] = []
    found = 0
    for page, command, options in said_of_hz():
        found += 1
        if command not in known:
            unknown.append((page, command))
        elif command not in ("test", "lab", "for", "run"):  # which pass options on
            unknown += [(page, command, one) for one in options if f"--{one}" not in help_of(command) + help_of("")]
    assert found > 100
    assert unknown == []


def test_actions_are_those_of_the_code() -> None:
    source = text_of(ROOT / "src/heap/settings/control.cpp")
    actions = re.findall(r'\{"(\w+)", "[^"]+",\s*Action::', source)
    assert len(actions) == 5
    assert row_names("knobs.md", "And five things can be done") == actions


def test_keys_that_are_live_are_those_of_the_code() -> None:
    table = text_of(ROOT / "src/heap/settings/options.cpp")
    rows = re.split(r'\{"(\w+)", "HZ_\w+",', table)[1:]
    live = {key for key, row in zip(rows[::2], rows[1::2], strict=True) if "Setting::" in row}
    assert len(rows) > 40
    shown = set(row_names("knobs.md", "## While the process runs"))
    learned = {key for key in live if key.startswith("learn_")}
    assert live - learned == shown - {"learn_…"}
    assert learned


def test_error_codes_are_those_of_the_code() -> None:
    named = re.findall(r'case Fault::\w+: return "(E\d\d) ([a-z-]+)"', text_of(ROOT / "src/box/guard/report.cpp"))
    assert len(named) > 8
    assert re.findall(r"^\| (E\d\d) ([a-z-]+) \|", text_of(DOC / "errors.md"), re.MULTILINE) == named


def test_boxes_and_lines_have_their_pages() -> None:
    """A box is a header that a line or a test of contracts names beside its role."""
    pages = {page.stem for page in (DOC / "box").glob("*.md")}
    there = {f"{header.parent.name}-{header.stem}" for header in (ROOT / "src/box").glob("*/*.hpp")}
    assert sorted(pages - there) == []
    used = set(re.findall(r'#include "box/(\w+/\w+)\.hpp"', "".join(map(text_of, (ROOT / "src/line").glob("*.hpp")))))
    boxes = {name.replace("/", "-") for name in used if not name.endswith("contract")}
    assert sorted(boxes - pages) == []
    lines = {header.stem.replace("_", "-") for header in (ROOT / "src/line").glob("*.hpp")}
    assert {page.stem for page in (DOC / "line").glob("*.md")} == lines


def test_names_for_the_linker_are_those_that_packages_are_held_to() -> None:
    """Both lists of what a library exports."""
    names = set(re.findall(r"^ +(\w+);$", text_of(ROOT / "src/export/exports.map").split("local:")[0], re.MULTILINE))
    listed = {
        line.split()[0] for line in text_of(ROOT / "test/package/exports.txt").splitlines() if line[:1] not in ("", "#")
    }
    assert names == listed


def test_the_glossary_is_short() -> None:
    table = text_of(DOC / "design.md").split("## Words")[1].split("\n\n")[1]
    words = [word for row in table.splitlines() for word in re.findall(r"\*\*([\w /]+)\*\*", row.split("|")[1])]
    words = [one for word in words for one in word.split(" / ")]
    assert len(words) == len(set(words))
    assert 15 < len(words) <= MOST_WORDS
