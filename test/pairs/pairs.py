# SPDX-License-Identifier: Apache-2.0
"""Features of the heap and of programs, two and three at a time: runs pairs.cpp so that each two of FEATURES are on
together in one run or another, with one seed a run, and tells what failed and how it is run again.

    pairs.py PROGRAM LINE [--library FILE] [--seconds N] [--seed N]

With --library the program is served by preload, else by what it was linked with."""

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SEVERAL = 3  # features of a run
LIMIT = 150  # seconds, after which a run hangs


@dataclass(frozen=True)
class Feature:
    """An option of the heap, or what the program does (a word that pairs.cpp knows), or both."""

    option: str = ""
    does: str = ""
    only: str = ""  # direct or preload
    not_in: tuple[str, ...] = ()  # lines


FEATURES = {
    "counted": Feature("stats:1,stats_file:/dev/null"),
    "profiled": Feature("profile_heap:2K,profile_heap_file:/dev/null", "profiles", not_in=("hz7",)),
    "guarded": Feature("guard_sample:7", not_in=("hz7",)),
    "limited": Feature("limit_hard:24M", "refused"),
    "softly": Feature("limit_soft:4M"),
    "alone": Feature("background:0"),
    "learning": Feature("policy:learn", not_in=("hz7",)),
    "small": Feature("preset:small", not_in=("hz7",)),
    "tight": Feature("thread_cache:2K", not_in=("hz7",)),
    "huge-pages": Feature("thp:always"),
    "named": Feature("name_mappings:1"),
    "threads": Feature(does="threads"),
    "forks": Feature(does="forks"),
    "handlers": Feature(does="handlers"),
    "heaps": Feature(does="heaps", not_in=("hz7",)),
    "knobs": Feature(does="knobs"),
    "trims": Feature(does="trims"),
    "sized": Feature(does="sized"),
    "huge": Feature(does="huge"),
    "aligned": Feature(does="aligned"),
    "operators": Feature(does="operators", only="preload"),
    "failing": Feature(does="failing", only="direct"),
}


def cover(names: list[str], choose: random.Random) -> list[tuple[str, ...]]:
    """Sets of SEVERAL such that each two of the names are together in one of them: the next is the best of some."""
    left = {frozenset(pair) for pair in itertools.combinations(names, 2)}
    sets = []
    while left:
        first = choose.choice(sorted(map(sorted, left)))
        tried = [(*first, *choose.sample([n for n in names if n not in first], SEVERAL - 2)) for _ in range(20)]
        best = max(tried, key=lambda one: sum(frozenset(p) in left for p in itertools.combinations(one, 2)))
        left -= {frozenset(pair) for pair in itertools.combinations(best, 2)}
        sets.append(best)
    return sets


def environment(line: str, library: str, features: tuple[str, ...]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not re.match(r"HZ_(?!TEST_)|LD_PRELOAD$", name)}
    options = ",".join(FEATURES[name].option for name in features if FEATURES[name].option)
    return kept | {"HZ_OPTIONS": options, "HZ_TEST_LINE": line} | ({"LD_PRELOAD": library} if library else {})


def run(program: str, line: str, library: str, features: tuple[str, ...], seed: int, milliseconds: int) -> str:
    """What went wrong, "" if nothing did."""
    does = [FEATURES[name].does for name in features if FEATURES[name].does]
    command = [program, str(seed), str(milliseconds), *does]
    given = environment(line, library, features)
    shown = " ".join([f"{name}={given[name]}" for name in ("LD_PRELOAD", "HZ_OPTIONS") if given.get(name)] + command)
    try:
        with tempfile.TemporaryDirectory(prefix="hz-pairs-") as folder:  # for profiles that a knob switched on
            done = subprocess.run(
                command, env=given, cwd=folder, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False
            )
    except subprocess.TimeoutExpired as late:
        said = late.stderr.decode() if isinstance(late.stderr, bytes) else late.stderr or ""
        return f"{'+'.join(features)} hangs: {shown}\n{said}"
    # What the heap says is a fault, but for a knob that a line has not and a profile that is refused its file. What a
    # sanitizer finds ends the program; it also says what it cannot do.
    wrong = [text for text in done.stderr.splitlines() if re.match(r"hz: (?!warning\b|ctl\b|profile\b)", text)]
    if done.returncode == 0 and not wrong:
        return ""
    said = "\n".join(done.stderr.splitlines()[-20:])
    return f"{'+'.join(features)} ended with {done.returncode}: {shown}\n{said}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("line")
    parser.add_argument("--library", default="")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    way = "preload" if options.library else "direct"
    names = [name for name, of in FEATURES.items() if of.only in ("", way) and options.line not in of.not_in]
    sets = cover(names, random.Random(options.seed))
    seconds = options.seconds / (4 if os.environ.get("HZ_TEST_TIER") == "quick" else 1)
    each = max(1, int(seconds * 1000 / len(sets)))
    program, library = str(Path(options.program).resolve()), options.library and str(Path(options.library).resolve())
    failed = 0
    for number, features in enumerate(sets):
        wrong = run(program, options.line, library, features, options.seed * 1000 + number, each)
        failed += wrong != ""
        if wrong:
            print(wrong, flush=True)
    print(f"{options.line} {way}: {len(names)} features, {len(sets)} runs of {each} ms, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
