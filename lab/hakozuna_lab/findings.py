# SPDX-License-Identifier: Apache-2.0
"""What `hz run --measure` says about its pairs of runs: a table, a verdict in words, the proof, and every reason to
doubt them."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab import LabError
from hakozuna_lab.machine import DISTURBED
from hakozuna_lab.stats import FEWEST, Estimate, median_interval, verdict
from hakozuna_lab.watch import Watch

TOO_SHORT = 0.1  # seconds; below, the start of a program is most of what is measured
BEFORE_CTRL_C = 0.1  # seconds
# A program that has more memory for itself than these, and of it from us less than this share, is hardly served.
LITTLE_KIB = 8 * 1024
HARDLY = 0.25


@dataclass(frozen=True)
class Measured:
    """One run."""

    seconds: float
    code: int
    peak_kib: int
    watch: Watch
    others_share: float
    interrupted: float | None = None  # when Ctrl-C came, on the clock of watch.series

    @property
    def end_kib(self) -> int:
        """The resident set when Ctrl-C came, or at the end. The program may hear of Ctrl-C before we do."""
        until = self.seconds if self.interrupted is None else self.interrupted - BEFORE_CTRL_C
        return next((kib for at, kib in reversed(self.watch.series) if at <= until), 0)

    @property
    def program(self) -> str:
        """Of several, the one that needed most memory; empty when the run was too short to see any."""
        return max(self.watch.programs_kib, key=self.watch.programs_kib.__getitem__, default="")

    @property
    def malloc(self) -> Path | None:
        return self.watch.served.get(self.program)


Pair = tuple[Measured, Measured]  # without us, with us


@dataclass(frozen=True)
class Share:
    """What our heap did in one process: calls of malloc and its like, the most that its spans and huge blocks held, and
    the most that the process had for itself."""

    calls: int
    held_kib: int
    own_kib: int

    @property
    def part(self) -> float:
        """What was given out may not have been touched yet, so that more is held than there is."""
        return min(1.0, self.held_kib / self.own_kib) if self.own_kib else 1.0


def refuse_unserved(pair: Pair, library: Path) -> None:
    without, served = pair
    if without.malloc and without.malloc.resolve() == library.resolve():
        raise LabError("there is no run without us: LD_PRELOAD names us already")
    if served.malloc and served.malloc.resolve() == library.resolve():
        return
    program = served.program or "the program"
    if served.malloc:
        raise LabError(f"{program} was not served by us: it calls the malloc of {served.malloc}")
    if reason := served.watch.unproven.get(program):
        raise LabError(f"{program} was not served by us: {reason}")
    if served.seconds > TOO_SHORT:
        raise LabError(f"no proof that {program} was served by us: its loader could not be asked")


def all_runs(pairs: Sequence[Pair]) -> list[Measured]:
    return [run for pair in pairs for run in pair]


def by_hand(pairs: Sequence[Pair]) -> bool:
    return any(run.interrupted is not None for run in all_runs(pairs))


def told(command: str, line: str, pairs: Sequence[Pair], share: Share | None = None) -> list[str]:
    ended_by_hand = by_hand(pairs)
    rows = [f"{'medians of ' + count(len(pairs), 'pair'):<24}{'without':>12}{'with ' + line:>14}{'ratio [95 %]':>26}"]
    if not ended_by_hand:
        rows.append(row("time, s", pairs, lambda run: run.seconds, 3))
    rows.append(row("peak memory, MiB", pairs, lambda run: run.peak_kib / 1024, 1))
    if ended_by_hand:
        rows.append(row("memory at Ctrl-C, MiB", pairs, lambda run: run.end_kib / 1024, 1))
    verdicts = [time_in_words(line, pairs, ended_by_hand), memory_in_words(line, pairs)]
    return [
        command,
        *rows,
        f"verdict: {'; '.join(verdicts)}",
        f"proof: {proof(pairs, share)}",
        *(f"note: {text}" for text in notes(line, pairs, ended_by_hand)),
    ]


def ratio(pairs: Sequence[Pair], value: Callable[[Measured], float]) -> Estimate | None:
    """With over without; None when there is nothing to divide by."""
    values = [(value(without), value(served)) for without, served in pairs]
    return median_interval([b / a for a, b in values]) if all(a > 0 for a, _ in values) else None


def row(title: str, pairs: Sequence[Pair], value: Callable[[Measured], float], digits: int) -> str:
    sides = [statistics.median(value(pair[side]) for pair in pairs) for side in (0, 1)]
    estimate = ratio(pairs, value)
    interval = f"{estimate.median:.3f} [{estimate.low:.3f}..{estimate.high:.3f}]" if estimate else "-"
    return f"{title:<24}{sides[0]:>12.{digits}f}{sides[1]:>14.{digits}f}{interval:>26}"


def time_in_words(line: str, pairs: Sequence[Pair], by_hand: bool) -> str:
    if by_hand:
        return "time is not compared, since Ctrl-C ended runs"
    shortest = min(run.seconds for run in all_runs(pairs))
    if shortest < TOO_SHORT:
        return f"too short to tell the speed (a run takes {shortest:.3f} s, most of it the start of the program)"
    return in_words(line, "time", ("faster", "slower"), ratio(pairs, lambda run: run.seconds), len(pairs))


def memory_in_words(line: str, pairs: Sequence[Pair]) -> str:
    return in_words(line, "peak memory", ("less", "more"), ratio(pairs, lambda run: run.peak_kib), len(pairs))


def in_words(line: str, what: str, words: tuple[str, str], estimate: Estimate | None, pairs: int) -> str:
    if estimate is None:
        return f"no {what} to compare"
    if pairs < FEWEST:
        return f"too few pairs to judge the {what}"
    taken = f"{line} takes {estimate.median:.2f} of the {what}"
    side = verdict(estimate)
    if side == "level":
        return f"the same {what}"
    if side == "unclear":
        return f"unclear, {count(pairs, 'pair')} can tell no difference in {what}"
    return f"{taken}: {words[0] if side == 'behind' else words[1]}"


def proof(pairs: Sequence[Pair], share: Share | None) -> str:
    seen = [pair for pair in pairs if pair[1].malloc]
    if not seen:
        return "none, the program ended before it could be looked at; its loader says that we would serve it"
    without, served = seen[-1]
    other = f"without, of {without.malloc}" if without.malloc else "without, it was not seen"
    found = f"{served.program} calls the malloc of {served.malloc} ({count(len(seen), 'run')} looked at)"
    return f"{found}; {other};\n       {share_in_words(served.program, share)}"


def share_in_words(program: str, share: Share | None) -> str:
    if share is None:
        return "how much of its memory was ours is not known, since it told no statistics at its end"
    held, own = share.held_kib / 1024, share.own_kib / 1024
    text = f"served {count(share.calls, 'call')}, held {held:.1f} of {own:.1f} MiB ({100 * share.part:.0f} %)"
    if share.own_kib > LITTLE_KIB and share.part < HARDLY:
        text += f":\n       HARDLY SERVED, most of its memory comes from elsewhere; see hz doctor -- {program}"
    return text


def notes(line: str, pairs: Sequence[Pair], by_hand: bool) -> Iterator[str]:
    if codes_differ(pairs):
        yield f"EXIT CODES DIFFER: without {codes(pairs, 0)}, with {codes(pairs, 1)}"
    elif codes(pairs, 0) != "0" and not by_hand:
        yield f"the program ended with {codes(pairs, 0)}, with us and without"
    unserved: dict[str, str] = {}
    for _, served in pairs:
        unserved |= {name: reason for name, reason in served.watch.unproven.items() if name != served.program}
    for name, reason in unserved.items():
        yield f"of the program's processes, {name} was not served: {reason}"
    disturbed = [run for run in all_runs(pairs) if run.others_share > DISTURBED]
    if disturbed and not by_hand:
        highest = max(run.others_share for run in disturbed)
        yield (
            f"others used up to {highest:.0%} of the machine during {len(disturbed)} of {2 * len(pairs)} runs; "
            "a quiet machine gives a better answer"
        )


def codes(pairs: Sequence[Pair], side: int) -> str:
    return ", ".join(sorted({str(pair[side].code) for pair in pairs}))


def codes_differ(pairs: Sequence[Pair]) -> bool:
    return codes(pairs, 0) != codes(pairs, 1)


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
