# SPDX-License-Identifier: Apache-2.0
"""Which lines and branches of src/ the tests reach. `hz coverage` (checks.py) calls it when its tests have run, with
the system's python; it reads once what they counted, in seconds.

clang counts each region of the code, and its runtime keeps the counters in a file that is mapped and shared (the preset
`coverage`): what a process has counted is there whether it exits, forks, aborts or is killed, and nobody writes at its
end. `llvm-cov export` says of each function of each program and library which regions it has and how often they were
run. A header is compiled many times, for lines and tests; here a place of the source is one place: it is reached if it
is in any of them."""

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from hakozuna_lab.paths import ROOT

PAGE = ROOT / "doc/coverage.md"
CODE, EXPANSION = 0, 1  # kinds of regions, as llvm-cov numbers them

Extent = tuple[int, ...]  # line and column of its begin, and of the first character behind it
Instance = frozenset[tuple[Extent, bool]]  # the regions of a function, and whether they were run
Place = tuple[Extent, ...]  # of a branch; before it the uses of macros that it is in, behind it its number there


@dataclass
class Source:
    """What is known of one file."""

    instances: set[Instance] = field(default_factory=set)  # of its functions
    branches: dict[Place, tuple[bool, bool]] = field(default_factory=dict)  # whether it was ever true, and ever false
    functions: dict[Extent, str] = field(default_factory=dict)  # mangled


def merge(exports: Iterable[Mapping[str, Any]], root: Path = ROOT) -> dict[str, Source]:
    """What llvm-cov exported, by the files of src/."""
    found: dict[str, Source] = defaultdict(Source)
    for export in exports:
        for function in (one for unit in export["data"] for one in unit["functions"]):
            add(found, function, [relative(name, root) for name in function["filenames"]])
    return {name: found[name] for name in sorted(found) if name.startswith("src/")}


def relative(name: str, root: Path) -> str:
    """The lines are compiled with paths from the root of the tree, the tests with whole ones."""
    path = PurePosixPath(name)
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def add(found: dict[str, Source], function: Mapping[str, Any], files: Sequence[str]) -> None:
    # A use of a macro is a file of its own, which another one has at that place.
    uses = {region[6]: (region[5], tuple(region[:4])) for region in function["regions"] if region[7] == EXPANSION}

    def place(number: int, extent: Extent) -> tuple[str, Place]:
        places = [extent]
        while number in uses:
            number, outer = uses[number]
            places.insert(0, outer)
        return files[number], tuple(places)

    first = function["regions"][0]
    file, (body, *_) = place(first[5], tuple(first[:4]))
    functions = found[file].functions
    functions[body] = min(functions.get(body, function["name"]), function["name"])
    regions = [region for region in function["regions"] if region[7] == CODE and region[5] == first[5]]
    found[file].instances.add(frozenset((tuple(region[:4]), region[4] > 0) for region in regions))
    met: Counter[Place] = Counter()
    for branch in function["branches"]:  # those that depend on nothing are not among them
        file, where = place(branch[6], tuple(branch[:4]))
        # Of a macro's argument all parts are said to lie in the same place.
        met[where] += 1
        where += ((met[where],),)
        before = found[file].branches.get(where, (False, False))
        found[file].branches[where] = (before[0] or branch[4] > 0, before[1] or branch[5] > 0)


def lines(source: Source, text: str) -> dict[int, bool]:
    """The lines that have code, and whether any instance reaches them. What decides in one is the innermost region that
    a line begins in, and those that begin in it; but not where others have a block that this one left out, by `if
    constexpr`, or that is a lambda's."""
    rows = ["", *text.splitlines()]
    begins = [len(row) - len(row.lstrip()) + 1 for row in rows]

    def innermost(extents: Iterable[Extent]) -> dict[int, Extent]:
        found = {}
        # Outer ones first: they begin before what is in them, or end after it.
        for extent in sorted(extents, key=lambda region: (region[:2], [-end for end in region[2:]])):
            for number in range(extent[0], extent[2] + 1):
                if extent[:2] <= (number, begins[number]) < extent[2:]:
                    found[number] = extent
        return found

    extents = {extent for instance in source.instances for extent, _ in instance}
    blocks = innermost(extent for extent in extents if rows[extent[0]][extent[1] - 1 :].startswith("{"))
    reached: dict[int, bool] = {}
    for instance in source.instances:
        own = dict(instance)
        here = [(extent[0], run) for extent, run in own.items()]
        for number, extent in innermost(own).items():
            block = blocks.get(number, extent)
            if block in own or not (extent[:2] <= block[:2] and block[2:] <= extent[2:]):
                here.append((number, own[extent]))
        for number, run in here:
            reached[number] = reached.get(number, False) or run
    return {number: reached[number] for number in sorted(reached) if re.match(r"(?!//).*\w", rows[number].lstrip())}


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Short forms: class and function, without what a template is of and what a function takes."""
    mangled = sorted(set(names))
    command = ["c++filt", "--no-params"]
    # Names that a file has for itself begin with that file.
    given = "\n".join(name.rpartition(":")[2] for name in mangled)
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)
    return {name: short(text) for name, text in zip(mangled, done.stdout.splitlines(), strict=True)}


def short(name: str) -> str:
    name = name.replace("(anonymous namespace)::", "").replace("operator()", "call")
    while (plain := re.sub(r"<[^<>]*>", "", name)) != name:
        name = plain
    name = re.sub(r"\(.*|\[abi:\w+\]| const$", "", name)
    operator = re.search(r"operator (new|delete)(\[\])?$", name)
    words = [operator[0]] if operator else name.split(" ")[-1].split("::")
    return "::".join(word for word in words[-2:] if word != "hz")


def function_of(source: Source, number: int, names: Mapping[str, str]) -> str:
    """The innermost one with a name; lambdas have none."""
    around = [extent for extent in source.functions if extent[0] <= number <= extent[2] and named(source, extent)]
    return names[source.functions[max(around)]] if around else "?"


def named(source: Source, extent: Extent) -> bool:
    return not re.search(r"(Ul.*E\d*_|\$_\d+)cl[EI]", source.functions[extent])


@dataclass(frozen=True)
class Account:
    file: str
    lines: dict[int, bool]
    branches: tuple[tuple[bool, bool], ...]
    missed: dict[str, list[int]]  # lines that are not reached, by function
    one_way: dict[str, list[int]]  # lines with branches that went one way alone

    @property
    def figures(self) -> tuple[int, int, int, int]:
        """Lines that are reached, and all; sides of branches that were taken, and all."""
        sides = [side for branch in self.branches for side in branch]
        return sum(self.lines.values()), len(self.lines), sum(sides), len(sides)


def accounts(sources: Mapping[str, Source], root: Path = ROOT) -> list[Account]:
    names = demangled(name for source in sources.values() for name in source.functions.values())
    found = []
    for file, source in sources.items():
        reached = lines(source, (root / file).read_text(encoding="utf-8"))
        missed: dict[str, list[int]] = defaultdict(list)
        for number in (number for number, run in reached.items() if not run):
            missed[function_of(source, number, names)].append(number)
        one_way: dict[str, list[int]] = defaultdict(list)
        # Where no side was taken the line says it.
        for number in sorted({where[0][0] for where, sides in source.branches.items() if sum(sides) == 1}):
            one_way[function_of(source, number, names)].append(number)
        found.append(Account(file, reached, tuple(source.branches.values()), missed, one_way))
    return found


def explained(page: Path = PAGE) -> set[tuple[str, str]]:
    """The functions that the page names, with the reason why no test reaches some of their lines."""
    rows = re.findall(r"^\| `(src/\S+)` \| (.+?) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {(file, name) for file, names in rows for name in re.findall(r"`([^`]+)`", names)}


def table(rows: Iterable[tuple[str, tuple[int, int, int, int]]]) -> list[str]:
    text = ["| | lines | | branches | |", "|---|--:|--:|--:|--:|"]
    for name, (lines_run, lines_all, sides_taken, sides_all) in rows:
        text.append(
            f"| {name} | {lines_run} / {lines_all} | {share(lines_run, lines_all)}"
            f" | {sides_taken} / {sides_all} | {share(sides_taken, sides_all)} |"
        )
    return text


def share(part: int, whole: int) -> str:
    """Rounded down: 100 % is all."""
    return f"{part * 1000 // whole / 10:.1f} %" if whole else ""


def sums(found: Sequence[Account]) -> list[tuple[str, tuple[int, int, int, int]]]:
    """By folder, and of all."""
    folders: dict[str, list[Account]] = defaultdict(list)
    for account in found:
        folders[str(PurePosixPath(account.file).parent)].append(account)
    groups = [*sorted(folders.items()), ("src", list(found))]
    return [(name, total(account.figures for account in group)) for name, group in groups]


def total(figures: Iterable[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    one, two, three, four = (sum(column) for column in zip(*figures, strict=True))
    return one, two, three, four


def ranges(numbers: Sequence[int]) -> str:
    """1, 3-5: lines without code between two do not part them."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(str(end) for end in part) for part in parts)


def listing(found: Sequence[Account], known: set[tuple[str, str]], branches: bool) -> list[str]:
    """What no test reaches, by file and function. What the page names is told apart."""
    text = []
    for title, kept in (("not reached", False), (f"not reached, as {PAGE.relative_to(ROOT)} says", True)):
        text += ["", title]
        for account in found:
            for name, numbers in account.missed.items():
                if ((account.file, name) in known) == kept:
                    text.append(f"  {account.file}  {name}  {ranges(numbers)}")
    if branches:
        text += ["", "branches that always went the same way"]
        for account in found:
            for name, numbers in account.one_way.items():
                text.append(f"  {account.file}  {name}  {ranges(numbers)}")
    return text


def tool(name: str) -> str:
    """Of the clang that compiled: another version may not read what it counted."""
    command = ["clang", f"-print-prog-name={name}"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def counted(folder: Path) -> list[str]:
    """The programs and libraries that say where their counters belong."""
    found = []
    for path in sorted(folder.rglob("*")):
        if "CMakeFiles" in path.parts or path.suffix in (".o", ".a") or not path.is_file() or path.is_symlink():
            continue
        with path.open("rb") as file:
            if file.read(4) == b"\x7fELF" and b"__llvm_covmap\0" in file.read():
                found.append(str(path))
    return found


def exported(folder: Path, counters: Path) -> Any:
    merged = folder / "coverage.profdata"
    profiles = folder / "coverage.list"  # a file for each program and library of each process
    profiles.write_text("".join(f"{path}\n" for path in sorted(counters.glob("*.profraw"))), encoding="utf-8")
    # With what was never run, too: lines have functions of one name that are not the same.
    subprocess.run([tool("llvm-profdata"), "merge", "-o", str(merged), f"--input-files={profiles}"], check=True)
    first, *others = counted(folder)
    command = [tool("llvm-cov"), "export", first, *(f"--object={other}" for other in others)]
    command += [f"--instr-profile={merged}", "--skip-expansions", "--ignore-filename-regex=/(usr|test|bench)/"]
    with (folder / "coverage.json").open("w+b") as file:
        # It counts functions that one source has and another one leaves out, as mismatched.
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"hz: llvm-cov: {done.stderr}")
        file.seek(0)
        return json.load(file)


def report(folder: Path, counters: Path, branches: bool) -> str:
    found = accounts(merge([exported(folder, counters)]))
    text = table((account.file, account.figures) for account in found)
    text += ["", *table(sums(found)), *listing(found, explained(), branches)]
    return "\n".join(text)
