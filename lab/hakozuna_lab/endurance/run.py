# SPDX-License-Identifier: Apache-2.0
"""`hz endure --hours N`: all services at once, each in rounds of its own: it is filled and emptied while trouble is
thrown at it, rests, and its memory is looked at. Told at the end: a page with pictures, and what fails. A look at rest
costs some tenths of a second of a processor, resident memory in between a look at /proc each second."""

import json
import math
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hakozuna_observe import layout, picture
from hakozuna_observe.process import Process, UnseenError

from hakozuna_lab import LabError, machine
from hakozuna_lab.contender import Contender, find_line
from hakozuna_lab.endurance import drift, page
from hakozuna_lab.endurance.services import SERVICES, Service, Work
from hakozuna_lab.endurance.trouble import Trouble
from hakozuna_lab.programs.program import Job
from hakozuna_lab.programs.server import running
from hakozuna_lab.watch import Watch, field_kib, read, tree

SEED = 1
REST_SECONDS = 3.0  # the heap gives back within a second of rest
WATCH_SECONDS = 1.0
FAILED, UNCLEAR = 1, 2  # exit codes
MIB = 1 << 20


@dataclass(frozen=True)
class Look:
    """At all processes of a service at rest, in MiB; `hours` from the start of everything."""

    hours: float
    pss: float
    anon: float  # of pss, what is no file's and not shared by mapping: what can drift
    live: float = 0.0  # these four as `hz stat` tells them
    cached: float = 0.0
    held_open: float = 0.0
    dirty: float = 0.0
    metadata: float = 0.0

    @property
    def kept(self) -> float:
        """By our heaps, beside what the program has."""
        return self.cached + self.held_open + self.dirty + self.metadata


@dataclass
class Story:
    """What became of one service."""

    service: Service
    version: str
    full: list[Look] = field(default_factory=list)
    rest: list[Look] = field(default_factory=list)
    resident: list[tuple[float, float]] = field(default_factory=list)  # hours, MiB
    thrown: Counter[str] = field(default_factory=Counter)
    failed: str = ""

    @property
    def drift(self) -> drift.Drift:
        return drift.of([look.hours for look in self.rest], [look.anon for look in self.rest])

    @property
    def verdict(self) -> str:
        return "failed" if self.failed else self.drift.verdict


@dataclass
class Clock:
    """Of the whole run."""

    hours: float
    rest_seconds: float = REST_SECONDS
    began: float = field(default_factory=time.monotonic)
    stop: threading.Event = field(default_factory=threading.Event)

    def now(self) -> float:
        return (time.monotonic() - self.began) / 3600

    def over(self) -> bool:
        return self.stop.is_set() or self.now() >= self.hours


def mapped(pid: int, hours: float) -> Look:
    """What the kernel says of a service."""
    texts = [read(Path(f"/proc/{member}/smaps_rollup")) for member in tree(pid)]
    anon, pss = (sum(field_kib(text, name) for text in texts) / 1024 for name in ("Pss_Anon", "Pss"))
    if not anon:
        raise LabError("the kernel tells no Pss_Anon of the service, which it does since Linux 5.9")
    return Look(hours, pss, anon)


def look_at(pid: int, hours: float) -> Look:
    """And what our heaps do. A process that ends meanwhile does not count."""
    look = mapped(pid, hours)
    pictures = []
    for member in tree(pid):
        with suppress(UnseenError):
            process = Process(member)
            pictures += [picture.take(process, one) for one in layout.find(process)]
    if not pictures:
        raise LabError(f"process {pid} is not served by us, or may not be looked into")

    def together(name: str) -> float:
        return sum(one.stats[name] for one in pictures) / MIB

    return replace(
        look,
        live=together("bytes_live"),
        cached=together("bytes_cached"),
        held_open=sum(one.held_open for one in pictures) / MIB,
        dirty=together("bytes_dirty"),
        metadata=together("bytes_metadata"),
    )


def attend(service: Service, line: Contender, clock: Clock, folder: Path) -> Story:
    """One service from its start to its end; what fails ends its story and nobody else's."""
    story = Story(service, service.program.version())
    try:
        work = service.work(Job(replace(line, env={**line.env, **service.env}), "endure", folder))
        with running(work.job, work.server) as pid:
            work.open(pid)
            try:
                with Watch(pid, interval=WATCH_SECONDS) as watch:
                    began = clock.now() - (time.perf_counter() - watch.started) / 3600
                    rounds(story, work, pid, clock)
                work.job.contender.check({"allocator_file": str(watch.one_file())})
            finally:
                work.close()
                story.resident = [(began + second / 3600, kib / 1024) for second, kib in watch.series]
    except (LabError, UnseenError, OSError) as error:
        story.failed = " ".join(str(error).split())[:500]
        print(f"hz: {service.name} failed: {story.failed}", file=sys.stderr, flush=True)
    return story


def rounds(story: Story, work: Work, pid: int, clock: Clock) -> None:
    trouble = Trouble(pid, work.own_signal, story.service.controlled, SEED)
    story.thrown = trouble.thrown
    while not clock.over():
        with trouble.during():
            work.fill()
            story.full.append(mapped(pid, clock.now()))
        # No trims here: what the heap keeps at rest would depend on when the last one was.
        with trouble.during(signals_alone=True):
            work.drain()
        work.rounds += 1
        clock.stop.wait(clock.rest_seconds)
        story.rest.append(look_at(pid, clock.now()))


def run(services: Sequence[Service], line: Contender, clock: Clock) -> list[Story]:
    with (
        tempfile.TemporaryDirectory(prefix="hz-endure-") as folder,
        ThreadPoolExecutor(len(services)) as pool,
    ):
        places = [Path(folder, service.name) for service in services]
        for place in places:
            place.mkdir()
        Path(folder).chmod(0o755)  # servers that refuse root run as another user
        told = [
            pool.submit(attend, service, line, clock, place) for service, place in zip(services, places, strict=True)
        ]
        try:
            return [story.result() for story in told]
        except KeyboardInterrupt:
            raise LabError("interrupted: there is no page") from None
        finally:
            clock.stop.set()


def choose(names: Sequence[str]) -> tuple[list[Service], dict[str, str]]:
    """Those named, or all; and why the others are absent."""
    for name in names:
        if name not in SERVICES:
            raise LabError(f"there is no service '{name}'; the services are: {' '.join(SERVICES)}")
    asked = [service for service in SERVICES.values() if service.name in names or not (names or service.on_request)]
    absent = {service.name: reason for service in asked if (reason := service.program.available())}
    if len(absent) == len(asked):
        raise LabError("no service can run: " + "; ".join(f"{name}: {reason}" for name, reason in absent.items()))
    return [service for service in asked if service.name not in absent], absent


def write_samples(stories: Sequence[Story], path: Path) -> None:
    """Every look, for whoever wants to draw something else."""
    with path.open("w", encoding="utf-8") as file:
        for story in stories:
            for when, looks in (("full", story.full), ("rest", story.rest)):
                for look in looks:
                    print(json.dumps({"service": story.service.name, "when": when, **asdict(look)}), file=file)


def main(names: Sequence[str], hours: float, line: str, out: Path) -> None:
    if not (math.isfinite(hours) and hours > 0):
        raise LabError(f"--hours {hours}: expected a number above 0")
    services, absent = choose(names)
    contender = find_line(line)
    out.mkdir(parents=True, exist_ok=True)
    machine.offer_ourselves()
    command = ["hz", "endure", "--hours", f"{hours:g}", "--line", line, *names]
    conditions = page.Conditions.begin(contender, hours, command, absent)
    text = f"hz: {', '.join(service.name for service in services)} under {line} for {hours:g} hours"
    print(text + "".join(f"; absent: {name}, {reason}" for name, reason in absent.items()), file=sys.stderr, flush=True)
    stories = run(services, contender, Clock(hours))
    write_samples(stories, out / "endurance.jsonl")
    path = page.write(stories, conditions, out / "endurance.md")
    print(page.table(stories))
    print(f"hz: the page is {path}", file=sys.stderr)
    sys.exit(tell(stories))


def tell(stories: Sequence[Story]) -> int:
    """One line for each service that does not pass."""
    code = 0
    for story in stories:
        name, found = story.service.name, story.drift
        if story.failed:
            print(f"hz: {name} failed: {story.failed}", file=sys.stderr)
        elif found.verdict == "drift":
            print(f"hz: {name} drifts: {found}, more than {drift.MOST:g} %/h", file=sys.stderr)
        elif found.verdict == "unclear":
            print(f"hz: {name} is unclear: {found} has {drift.MOST:g} in it; a longer run can tell", file=sys.stderr)
            code = code or UNCLEAR
            continue
        else:
            continue
        code = FAILED
    return code
