# SPDX-License-Identifier: Apache-2.0
"""`hz scale`: how an allocator would do on many cores. QEMU runs a lane whose threads are the cores of a simulated
machine (bench/scale), and counts which cache lines pass between them and what code asked for them. The counts do not
depend on the machine that it runs on; the speed is that of a model, an order and no prediction."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hakozuna_lab import LabError, RunError, UsageError, catalogue, machine, tables
from hakozuna_lab.bench import Request as BenchRequest
from hakozuna_lab.bench import find_contenders
from hakozuna_lab.contender import Contender, line_names
from hakozuna_lab.palette import styles
from hakozuna_lab.paths import BUILD, LANE, RESULTS
from hakozuna_lab.runner import Runner
from hakozuna_lab.schedule import Task, attempt, must_repeat
from hakozuna_lab.selection import Wish, choose
from hakozuna_lab.store import Cell

LANES = ("guard_r0", "guard_r50", "main_r0", "main_r50", "main_r90")  # if none are named
THREADS = (2, 8, 32, 64)
MOST_THREADS = 64
QEMU = "qemu-x86_64"
PARTS = BUILD / "bench/scale"
TIMEOUT = 1800.0  # seconds, of one cell
NATIVE_RUNS = 5


@dataclass(frozen=True)
class Request:
    words: Sequence[str] = ()
    lines: Sequence[str] = ()
    peers: Sequence[str] = ()
    extra: Sequence[str] = ()
    env: Sequence[str] = ()
    threads: tuple[int, ...] = ()
    warm_up: int = 12_000  # calls of each thread before those that are counted
    calls: int = 4_000
    hottest: int = 3
    out: Path | None = None


@dataclass(frozen=True)
class HotLine:
    """A line of 64 bytes, in transfers for one operation; the code that asked for it, likewise, the busiest first."""

    transfers: float
    place: str
    code: Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Counted:
    """What a run counted, for one operation: a call of malloc, free or their kind. Of transfers, those that code
    outside of the program asked for."""

    transfers: float
    instructions: float
    speed: float  # operations a second of virtual time, of all cores
    hot: Sequence[HotLine] = field(default=())

    @property
    def hottest(self) -> float:
        return self.hot[0].transfers if self.hot else 0.0


@dataclass(frozen=True)
class Module:
    begin: int
    end: int
    file: str  # "": the program


class Map:
    """Where the files of the simulated process lie, and which of them has malloc."""

    def __init__(self, text: str, everything: bool = False) -> None:
        self.modules: list[Module] = []
        self.malloc, self.everything = "", everything
        for line in text.splitlines():
            begin, _, rest = line.partition(" ")
            if begin == "malloc":
                self.malloc = rest
            else:
                end, _, file = rest.partition(" ")
                self.modules.append(Module(int(begin, 16), int(end, 16), file))

    def find(self, at: int) -> Module | None:
        return next((module for module in self.modules if module.begin <= at < module.end), None)

    def is_program(self, at: int) -> bool:
        module = self.find(at)
        return module is not None and not module.file and not self.everything


def simulate(
    contender: Contender,
    command: Sequence[str],
    threads: int,
    warm_up: int,
    calls: int,
    hottest: int = 0,
    everything: bool = False,
) -> Counted:
    """Runs a program of so many threads until each has made its calls; RunError if they end before that. With
    `everything`, what the program itself asks for counts, too."""
    qemu = shutil.which(QEMU)
    if not qemu:
        raise LabError(f"{QEMU} is missing (Debian's package qemu-user, version 4.2 to 8.2)")
    if not (PARTS / "cores.so").is_file():
        raise LabError(f"{PARTS} is not built, or this is no x86_64 Linux")
    with tempfile.TemporaryDirectory(prefix="hz-scale-") as name:
        results, places = Path(name, "results.json"), Path(name, "map")
        env = contender.environment()
        libraries = [str(PARTS / "machine.so"), *filter(None, [env.pop("LD_PRELOAD", "")])]
        guest = {"LD_PRELOAD": ":".join(libraries), "SCALE_CORES": str(threads), "SCALE_MAP": str(places)}
        plugin = f"{PARTS / 'cores.so'},out={results},cores={threads},warm={warm_up},count={calls}"
        words = [word for key, value in guest.items() for word in ("-E", f"{key}={value}")]
        try:
            ended = subprocess.run(
                [qemu, "-cpu", "max", "-plugin", plugin, *words, *command],
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"no end after {TIMEOUT:.0f} s") from None
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or ["no word"])[-1]
            raise RunError(f"exit code {ended.returncode}: {last}")
        if not results.is_file():
            raise RunError("it ended before every thread had made its calls")
        where = Map(places.read_text(encoding="utf-8"), everything)
        contender.check({"allocator_file": where.malloc})
        return count(json.loads(results.read_text(encoding="utf-8")), where, hottest)


def count(results: Mapping[str, Any], where: Map, hottest: int) -> Counted:
    cores = results["cores"]
    operations = results["count"] * len(cores)
    outside = by_instruction(results["code"], where)
    return Counted(
        transfers=sum(outside.values()) / operations,
        instructions=sum(core["instructions"] for core in cores) / operations,
        speed=sum(results["count"] * results["per_nanosecond"] / core["time"] for core in cores) * 1e9,
        hot=hot_lines(results["lines"], operations, where, hottest),
    )


def by_instruction(code: Mapping[str, int], where: Map) -> dict[int, int]:
    """What passed, by the instruction that asked for it; none of the program's own."""
    addresses = {int(at, 16): passed for at, passed in code.items()}
    return {at: passed for at, passed in addresses.items() if not where.is_program(at)}


def hot_lines(lines: Iterable[Mapping[str, Any]], operations: int, where: Map, hottest: int) -> list[HotLine]:
    """The first one always; of no more than `hottest` the code is looked up, which takes a second."""
    found = [(line["at"], code) for line in lines if (code := by_instruction(line["code"], where))]
    found.sort(key=lambda one: -sum(one[1].values()))
    named = found[:hottest]
    names = source_lines({at for _, code in named for at in code}, where)
    hot = []
    for at, code in found[: max(1, hottest)]:
        module = where.find(int(at, 16))
        place = f"{Path(module.file).name or 'the program'}+{int(at, 16) - module.begin:x}" if module else "its heap"
        asked: Counter[str] = Counter()
        for instruction, passed in code.items():
            asked[names.get(instruction, "?")] += passed
        by = [(passed / operations, name) for name, passed in asked.most_common(4)]
        hot.append(HotLine(sum(code.values()) / operations, place, by if named else ()))
    return hot


def source_lines(instructions: Iterable[int], where: Map) -> dict[int, str]:
    """Function and line of each, with the functions that it was inlined into, as addr2line knows them."""
    by_module = defaultdict(list)
    for at in instructions:
        if (module := where.find(at)) and module.file:
            by_module[module].append(at)
    names = {}
    for module, addresses in by_module.items():
        offsets = [hex(at - module.begin) for at in addresses]
        told = subprocess.run(
            ["addr2line", "-a", "-i", "-f", "-C", "-s", "-e", module.file, *offsets],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        blocks = re.split(r"^0x[0-9a-f]+\n", told, flags=re.MULTILINE)[1:]
        for at, block in zip(addresses, blocks, strict=False):
            names[at] = frames(block.splitlines()) or f"{Path(module.file).name}+{at - module.begin:x}"
    return names


def frames(lines: Sequence[str]) -> str:
    """Of pairs of lines, function and place: the first two that are not the library of C++."""
    shown = []
    for function, place in zip(lines[::2], lines[1::2], strict=False):
        name = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", function)).partition("(")[0]
        if name.startswith("std::") or name == "??":
            continue
        shown.append(f"{name.removeprefix('hz::')} {place.partition(' ')[0]}")
    return ", in ".join(shown[:2])


def native(cell: Cell, contender: Contender, runner: Runner) -> str:
    """The lane itself on this machine, where it has a processor for each thread: what the model is held against. A run
    that others disturbed is repeated, as everywhere in the lab."""
    if cell.threads > machine.usable_cpus():
        return "-"
    speeds, disturbed = [], 0
    for number in range(NATIVE_RUNS):
        task, tries = Task(cell, contender, number), 1
        run = attempt(task, tries, runner.run)
        while must_repeat(run, False):
            tries += 1
            run = attempt(task, tries, runner.run)
        if "failed" in run.record:
            return f"failed: {run.record['failed']}"
        speeds.append(float(run.record["ops_per_s"]))
        disturbed += run.disturbed
    return tables.operations(statistics.median(speeds)) + (f", {disturbed} disturbed" if disturbed else "")


def main(request: Request, arguments: Sequence[str]) -> None:
    wish = Wish(words=tuple(request.words) or LANES, threads=request.threads or THREADS)
    if max(wish.threads) > MOST_THREADS:
        raise UsageError(f"no more than {MOST_THREADS} threads")
    contenders = find_contenders(
        BenchRequest(wish, request.lines, list(request.peers) or ["none"], request.extra, request.env)
    )
    lanes = catalogue.read(LANE)
    runner = Runner(lanes, {}, LANE)
    rows: list[Row] = []
    for cell in choose(wish, lanes, {}):
        for contender in contenders:
            row = counted(cell, contender, request)
            rows.append((cell, contender, row, native(cell, contender, runner)))
            text = row if isinstance(row, str) else f"{row.hottest:.4f} of the hottest line"
            print(f"{cell.id} {contender.name}: {text}", file=sys.stderr, flush=True)
    show(rows, request, " ".join(["hz scale", *arguments]))


def counted(cell: Cell, contender: Contender, request: Request) -> Counted | str:
    command = [str(LANE), "--lane", cell.name, "--threads", str(cell.threads)]
    try:
        return simulate(contender, command, cell.threads, request.warm_up, request.calls, request.hottest)
    except RunError as error:
        return f"failed: {error}"


HEADINGS = ("cell", "allocator", "transfers", "hottest line", "instructions", "speed", "measured here")

Row = tuple[Cell, Contender, Counted | str, str]  # a text: why there are no counts; the speed that was measured here


def fields(row: Row) -> list[str]:
    cell, contender, result, measured = row
    if isinstance(result, str):
        return [cell.id, contender.name, result, "-", "-", "-", measured]
    return [
        cell.id,
        contender.name,
        f"{result.transfers:.3f}",
        f"{result.hottest:.4f}",
        f"{result.instructions:.0f}",
        tables.operations(result.speed),
        measured,
    ]


def show(rows: Sequence[Row], request: Request, command: str) -> None:
    path = request.out or RESULTS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-scale.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    commit, changed = machine.commit()
    conditions = (
        f"command: `{command}`\n\ncommit: {commit}{' with local changes' if changed else ''}; {qemu_version()}\n\n"
        f"For one call of malloc, free or their kind, over {request.calls} calls of each thread after "
        f"{request.warm_up} others: cache lines that passed from core to core, because code outside of the program "
        "asked for them; those of the hottest line; instructions. Speed: calls a second of virtual time, of a model "
        "without limits of caches, page faults and kernel; an order and no prediction. Measured here: operations a "
        f"second of the lane itself, median of {NATIVE_RUNS} runs, where the machine has a processor for each thread."
    )
    pictures = draw(rows, path)
    text = [conditions, tables.markdown_table(HEADINGS, [fields(row) for row in rows]), *map(hot_text, rows)]
    path.write_text("\n\n".join(filter(None, [*text, *pictures])) + "\n", encoding="utf-8")
    console = Console(width=None if sys.stdout.isatty() else tables.TEXT_COLUMNS)
    table = Table(box=None, padding=(0, 1, 0, 0))
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number < 2 else "right")
    for row in rows:
        table.add_row(*fields(row))
    console.print(table)
    for row in rows:
        if row[1] == rows[0][1] and (text_of := hot_text(row)):
            print(f"\n{text_of}")
    print(f"hz: {path}", file=sys.stderr)


def hot_text(row: Row) -> str:
    cell, contender, result, _ = row
    if isinstance(result, str) or not any(line.code for line in result.hot):
        return ""
    text = [f"{cell.id} {contender.name}, the hottest lines:"]
    for line in result.hot:
        text.append(f"    {line.transfers:.4f} {line.place}")
        text += [f"        {transfers:.4f} {name}" for transfers, name in line.code]
    return "\n".join(text)


def draw(rows: Sequence[Row], path: Path) -> list[str]:
    """Speed over cores, a picture for each lane that ran with several numbers of threads."""
    from hakozuna_lab import plots

    series: dict[str, dict[str, list[plots.Point]]] = defaultdict(lambda: defaultdict(list))
    for cell, contender, result, _ in rows:
        if isinstance(result, Counted):
            point = plots.Point(cell.threads, result.speed, result.speed, result.speed)
            series[cell.name][contender.name].append(point)
    ours = [name for name in line_names() if any(name in of_lane for of_lane in series.values())]
    others = dict.fromkeys(name for of_lane in series.values() for name in of_lane if name not in ours)
    looks = styles(ours, list(others))
    written = []
    for lane, of_lane in series.items():
        numbers = sorted({int(point.x) for points in of_lane.values() for point in points})
        if len(numbers) < 2:
            continue
        ticks = {float(number): str(number) for number in numbers}
        title = f"{lane} on simulated cores"
        figure = plots.curves(title, "cores", "ops/s of the model", of_lane, looks, ticks, log_x=True)
        plots.save(figure, path.parent, f"{path.stem}-{lane}", title)
        written.append(f"![{title}]({path.stem}-{lane}.svg)")
    return written


def qemu_version() -> str:
    told = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False, env=dict(os.environ)).stdout
    return told.partition("\n")[0]
