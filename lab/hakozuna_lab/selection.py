# SPDX-License-Identifier: Apache-2.0
"""What `hz bench` measures: from the words of the command line to a list of cells."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hakozuna_lab import LabError, UsageError
from hakozuna_lab.catalogue import Catalogue, Lane, iterations_key, select
from hakozuna_lab.programs.program import Program
from hakozuna_lab.store import Cell

THREADS = (2, 16)
SWEEPS = {"threads": (1, 2, 4, 8, 16, 32, 64), "remote": (0, 10, 25, 50, 75, 90, 100)}
SWEEP_LANES = ("guard_r50", "main_r50")
USUAL_LANES = (
    *("guard_*", "main_*", "cross128_*", "small_interleaved_*"),
    *("random_mixed_*", "dist_app", "alloc_test", "xmalloc_test"),
)
# Of lanes whose iteration is a block or two: with fewer, a run measures how threads begin.
LEAST_ITERATIONS = {"ring": 50_000, "interleaved": 50_000}
# Lane, threads, iterations per thread: chosen so that a run takes a quarter of a second, with the slowest peers a few.
QUICK = (
    ("guard_r0", 2, 1_000_000),
    ("main_r50", 2, 200_000),
    ("main_r90", 16, 30_000),
    ("cross128_r90", 2, 50_000),
    ("small_interleaved_r90", 2, 100_000),
    ("random_mixed_small", 1, 5_000_000),
)
QUICK_REST = 1000  # milliseconds: by then memory is to be back, 50 ms after the end it need not be


@dataclass(frozen=True)
class Wish:
    """The part of the command line that chooses cells."""

    words: tuple[str, ...] = ()  # lanes, families, globs, programs, program/case
    quick: bool = False
    full: bool = False
    threads: tuple[int, ...] = ()
    modes: tuple[str, ...] = ("fair",)
    sweep: str = ""
    iterations: int | None = None
    equal_work: bool = False  # above two threads, the iterations of two shared among all
    touched: bool = True
    written: bool = False
    settle: int | None = None


def choose(wish: Wish, lanes: Catalogue, programs: Mapping[str, Program]) -> list[Cell]:
    if wish.quick and wish != Wish(quick=True):
        raise UsageError("--quick has its own selection: no lanes and no options that choose cells beside it")
    if wish.full and wish.sweep:
        raise UsageError("--full and --sweep exclude each other")
    if wish.equal_work and wish.iterations:
        raise UsageError("--equal-work and --iterations exclude each other")
    if wish.written and not wish.touched:
        raise UsageError("--written and --untouched exclude each other")
    if wish.quick:
        return [lane_cell(lanes, lane, threads, iterations) for lane, threads, iterations in QUICK]
    program_words = [word for word in wish.words if is_program(word, programs)]
    lane_words = [word for word in wish.words if word not in program_words]
    cells = program_cells(program_words, programs, wish.settle)
    if wish.full:
        lane_words = ["*"]
    elif not wish.words or (wish.sweep and not lane_words):
        lane_words = list(SWEEP_LANES if wish.sweep else USUAL_LANES)
    return [*lane_cells(select(lanes, lane_words), wish), *cells] if lane_words else cells


def lane_cell(lanes: Catalogue, name: str, threads: int, iterations: int) -> Cell:
    (lane,) = select(lanes, [name])
    return Cell("lane", name, lane.threads or threads, lane.modes[0], iterations=iterations, rest=QUICK_REST)


def lane_cells(lanes: Iterable[Lane], wish: Wish) -> list[Cell]:
    cells = []
    for lane in lanes:
        if wish.sweep:
            refuse_sweep(lane, wish.sweep)
        threads = SWEEPS["threads"] if wish.sweep == "threads" else wish.threads or THREADS
        remotes = SWEEPS["remote"] if wish.sweep == "remote" else (None,)
        cells += [
            Cell(
                "lane",
                lane.lane,
                count,
                mode,
                remote,
                iterations(lane, mode, count, wish),
                wish.touched,
                wish.settle,
                wish.written,
            )
            for count in ([lane.threads] if lane.threads else threads)
            for mode in (mode for mode in lane.modes if mode in wish.modes)
            for remote in remotes
        ]
    if not cells:
        raise UsageError(f"none of these lanes has mode {' or '.join(wish.modes)}")
    return cells


def iterations(lane: Lane, mode: str, threads: int, wish: Wish) -> int | None:
    """Per thread, None for the lane's own. One that is not made of iterations (it runs for a time, say) is left as it
    is."""
    if "iterations" not in lane.definition:
        return None
    if wish.equal_work and not lane.threads and threads > min(THREADS):
        own = int(lane.definition[iterations_key(lane, mode)])
        return max(own * min(THREADS) // threads, min(own, LEAST_ITERATIONS.get(lane.family, 1)))
    return wish.iterations


def refuse_sweep(lane: Lane, sweep: str) -> None:
    if sweep not in SWEEPS:
        raise UsageError(f"--sweep {sweep}: threads or remote")
    if sweep == "threads" and lane.threads:
        raise UsageError(f"{lane.lane} always has {lane.threads} threads: no sweep of threads")
    if sweep == "remote" and "remote_percent" not in lane.definition:
        raise UsageError(f"{lane.lane} has no remote percentage: no sweep of it")


def is_program(word: str, programs: Mapping[str, Program]) -> bool:
    return word == "programs" or word.partition("/")[0] in programs


def program_cells(words: Iterable[str], programs: Mapping[str, Program], settle: int | None) -> list[Cell]:
    """`programs` means all that are there; one that is named must be there."""
    names: list[str] = []
    for word in words:
        name, _, case = word.partition("/")
        if word == "programs":
            names += [cell for program in programs.values() if not program.available() for cell in program.cells]
        elif reason := programs[name].available():
            raise LabError(f"{name}: {reason}")
        else:
            found = [cell for cell in programs[name].cells if not case or cell == word]
            if not found:
                raise UsageError(f"{name} has no case '{case}'; it has: {' '.join(programs[name].cells)}")
            names += found
    return [Cell("program", name, settle=settle) for name in dict.fromkeys(names)]
