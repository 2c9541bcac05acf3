# SPDX-License-Identifier: Apache-2.0
"""`hz tune`: which sizes a program asks for, what their classes waste, how much of its time the allocator takes, and a
profile that gives the worst sizes classes of their own, and has a program that spends little time hold little. Runs
the program once under a heap that observes, keeps the profile of the process that it would save most, and runs the
program in pairs without and with it: what it saves is measured, not estimated."""

import shlex
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab import LabError
from hakozuna_lab.contender import Contender
from hakozuna_lab.findings import Measured, Pair
from hakozuna_lab.measure import Runs, environment, repeatable_input

MIB = 1 << 20
SPAN = 64 << 10
SHOWN = 8  # classes in the report


@dataclass(frozen=True)
class Profile:
    """What one process wrote: doc/profile.md."""

    text: str
    program: str
    classes: dict[int, int]  # bytes of the class's slots -> bytes that it would save
    spans: dict[int, int]  # bytes of the slots -> the most spans of the class
    sizes: dict[int, int]  # sizes, rounded up to 16 bytes -> slots that came for them
    busy: tuple[int, int]  # windows of a thread's time in which it was, of so many
    peak: dict[str, int]  # what was held at its largest, bytes, by who had it
    small: bool  # it asks for the preset of that name

    @property
    def saves(self) -> int:
        return sum(self.classes.values())

    @property
    def acts(self) -> bool:
        return self.small or bool(self.classes)

    @property
    def bytes(self) -> int:
        return sum(map(self.held, self.spans))

    def held(self, slot: int) -> int:
        """The most bytes in spans of that class: of slots above 64 KiB, each has one of its own."""
        return self.spans[slot] * -(-slot // SPAN) * SPAN


def read(text: str) -> Profile:
    if not text.startswith("hakozuna-profile 1\n"):
        raise LabError("what the program wrote is no profile: is the library older than hz?")
    program, busy, small = "", (0, 0), False
    peak: dict[str, int] = {}
    numbers: dict[str, dict[int, int]] = {"class": {}, "slot": {}, "size": {}}
    for line in text.splitlines()[1:]:
        match line.split(" "):
            case ["program", name]:
                program = name
            case ["preset", "small"]:
                small = True
            case ["windows", windows, "busy", some]:
                busy = (int(some), int(windows))
            case ["peak", _, *parts]:
                peak = {word: int(number) for word, number in zip(parts[::2], parts[1::2], strict=True)}
            case [("class" | "slot" | "size") as kind, number, _, value]:
                numbers[kind][int(number)] = int(value)
            case _:
                pass
    return Profile(text, program, numbers["class"], numbers["slot"], numbers["size"], busy, peak, small)


def best(profiles: Iterable[Profile]) -> Profile:
    """Of several processes the one that would save most; where none saves anything, the largest."""
    found = list(profiles)
    if not found:
        raise LabError("no process wrote a profile: none ended by itself, or none was served by us")
    return max(found, key=lambda profile: (profile.saves, profile.bytes))


def waste(profile: Profile) -> list[str]:
    """The largest classes: what they held, which size most of their slots came for, and how much of these was not
    asked for."""
    slots = sorted(profile.spans)
    rows = []
    for slot in sorted(slots, key=lambda slot: -profile.held(slot))[:SHOWN]:
        below = max((other for other in slots if other < slot), default=0)
        sizes = {size: count for size, count in profile.sizes.items() if below < size <= slot}
        asked, count = sum(size * count for size, count in sizes.items()), sum(sizes.values())
        often = max(sizes, key=sizes.__getitem__, default=0)
        rows.append(
            f"{slot:>9,} {profile.held(slot) / MIB:>13.1f} "
            + (f"{often:>14,} {100 * (1 - asked / (count * slot)):>9.1f} %" if count else f"{'-':>14} {'-':>11}")
        )
    return rows


def causes(profile: Profile) -> list[str]:
    """Why the process held what it held at its largest."""
    if not any(profile.peak.values()):
        return []
    words = {
        "blocks": "in blocks, sizes rounded up to their class",
        "spans": "free in spans that some blocks hold open",
        "cached": "at most, in the caches of threads",
        "waiting": "waiting for another thread",
        "dirty": "free, not yet given back",
    }
    rows = (f"{profile.peak.get(key, 0) / MIB:>9.1f} {why}" for key, why in words.items())
    return ["at its largest, MiB:", *rows, ""]


def told(command: str, profile: Profile, file: Path, observed: int, pairs: Sequence[Pair]) -> list[str]:
    """`observed`: the exit code of the run that was observed."""
    text = [
        f"{command}: profile of {profile.program}, {file}",
        "",
        *causes(profile),
        "of the largest classes:  most MiB   usual size    not asked for",
        *waste(profile),
        "",
    ]
    some, windows = profile.busy
    text += [f"busy in the allocator in {some:,} of {windows:,} windows of 4 ms"] if windows else []
    text += ["so it may hold little (preset small)"] if profile.small else []
    if not profile.classes:
        text.append("its sizes fit their classes: no class of its own would save a sixteenth of one")
    if not profile.acts:
        return [*text, "Nothing to gain."]
    text += [f"a class of {size:,} bytes would save {saves / MIB:.1f} MiB" for size, saves in profile.classes.items()]
    if not pairs:
        return text
    codes = {observed} | {run.code for pair in pairs for run in pair}
    if len(codes) != 1:
        ended = ", ".join(map(str, sorted(codes)))
        return [*text, "", f"not measured: the program ended with {ended}, so it does not do the same each time"]
    peaks = [statistics.median(run.peak_kib / 1024 for run in runs) for runs in zip(*pairs, strict=True)]
    times = sorted(after.seconds / before.seconds for before, after in pairs)
    return [
        *text,
        "",
        f"measured, {len(pairs)} pairs: "
        f"peak {peaks[0]:.1f} MiB without, {peaks[1]:.1f} with it ({peaks[1] / peaks[0]:.3f}); "
        f"time {statistics.median(times):.3f} ({times[0]:.3f}..{times[-1]:.3f})",
        f"To use it: HZ_PROFILE={file}",
    ]


class Tuning(Runs):
    """Without the profile, and with it. What the caller's environment says of either is not asked."""

    def plain(self) -> dict[str, str]:
        env = environment(self.library)
        for said in ("HZ_PROFILE", "HZ_POLICY"):
            env.pop(said, None)
        return env

    def observe(self) -> tuple[Measured, Profile]:
        with tempfile.TemporaryDirectory() as folder:
            observing = {"HZ_POLICY": "observe", "HZ_PROFILE": f"{folder}/%p"}
            run = self.once("observing", self.plain() | observing)
            # What a killed process left has another name. GNU time runs the program, and is served, too.
            profiles = [read(file.read_text(encoding="utf-8")) for file in Path(folder).glob("[0-9]*[0-9]")]
            own = Path(self.command[0]).name
            return run, best(one for one in profiles if one.program != "time" or own == "time")

    def compare(self, file: Path, number: int) -> Pair:
        done: dict[bool, Measured] = {}
        for profiled in (False, True) if number % 2 == 0 else (True, False):
            env = self.plain() | ({"HZ_PROFILE": str(file)} if profiled else {})
            done[profiled] = self.once(f"pair {number + 1}, {'with' if profiled else 'without'}", env)
        return done[False], done[True]


def main(command: Sequence[str], line: Contender, pairs: int, log: Path, show: bool, out: Path | None) -> int:
    assert line.library
    log.parent.mkdir(parents=True, exist_ok=True)
    with repeatable_input() as stdin, log.open("wb", buffering=0) as written:
        runs = Tuning(command, line.library, stdin, None if show else written)
        print("hz: observing…", file=sys.stderr)
        observed, profile = runs.observe()
        file = (out or Path(f"{Path(command[0]).name}.hzprofile")).resolve()
        file.write_text(profile.text, encoding="utf-8")
        done: list[Pair] = []
        for number in range(pairs if profile.acts else 0):
            print(f"hz: pair {number + 1} of {pairs}…", file=sys.stderr)
            done.append(runs.compare(file, number))
    print("\n".join(told(shlex.join(command), profile, file, observed.code, done)))
    return 0
