# SPDX-License-Identifier: Apache-2.0
"""The command line of the lab. It only parses; each command's work is in the module that it imports when it is called,
so that a command costs the start of its own modules alone."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hakozuna_lab import LabError, UsageError
from hakozuna_lab.paths import ROOT

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


class Mode(StrEnum):
    FAIR = "fair"
    UPSTREAM = "upstream"
    BOTH = "both"

    @property
    def names(self) -> tuple[str, ...]:
        return ("fair", "upstream") if self is Mode.BOTH else (self.value,)


class Sweep(StrEnum):
    THREADS = "threads"
    REMOTE = "remote"


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def thread_counts(text: str) -> tuple[int, ...]:
    try:
        counts = tuple(int(word) for word in words(text))
    except ValueError:
        counts = (0,)
    if any(count < 1 for count in counts):
        raise UsageError(f"--threads {text}: expected numbers of threads, separated by commas")
    return counts


Threads = Annotated[str, typer.Option(help="numbers of threads, with commas (2,16)")]
Iterations = Annotated[int | None, typer.Option(min=1, help="per thread, instead of the lane's own")]
Seed = Annotated[int | None, typer.Option(min=0, help="of the lanes' random numbers")]
Out = Annotated[Path | None, typer.Option(help="file for the results (bench/results/<time>-<name>.jsonl)")]


@app.command()
def bench(
    context: typer.Context,
    lanes: Annotated[
        list[str] | None,
        typer.Argument(help="lanes, families, globs, `guard`, `programs`, program/case; with --resume the file"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="a few short cells, under 10 minutes on 2 CPUs")] = False,
    full: Annotated[bool, typer.Option("--full", help="every lane, fair and upstream; takes hours")] = False,
    sweep: Annotated[Sweep | None, typer.Option(help="over numbers of threads or shares of remote frees")] = None,
    lines: Annotated[
        str, typer.Option(help="our lines, with commas, `all` or `none` (the default line); the first is judged")
    ] = "",
    peers: Annotated[
        str,
        typer.Option(help="with commas; `newest`, `default`, `all`, `hardened` or `none` (all; with --quick newest)"),
    ] = "",
    peer: Annotated[list[str] | None, typer.Option(help="NAME=LIBRARY, one more peer; may repeat")] = None,
    env: Annotated[list[str] | None, typer.Option(help="CONTENDER=KEY=VALUE, a setting; may repeat")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="rounds (7; with --quick 5)")] = None,
    threads: Threads = "",
    mode: Annotated[Mode | None, typer.Option(help="fair unless --full")] = None,
    iterations: Iterations = None,
    equal_work: Annotated[
        bool, typer.Option("--equal-work", help="more than 2 threads share the iterations of 2")
    ] = False,
    untouched: Annotated[bool, typer.Option("--untouched", help="do not write into the blocks")] = False,
    written: Annotated[
        bool, typer.Option("--written", help="write blocks in full (lanes with a share of remote frees)")
    ] = False,
    settle: Annotated[
        int | None,
        typer.Option(min=1, help="milliseconds before memory is read idle, and after (50; of servers 2000)"),
    ] = None,
    seed: Seed = None,
    out: Out = None,
    count: Annotated[
        bool, typer.Option("--count", help="instructions of whole programs, by callgrind: `programs`, or names")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an interrupted file (the latest)")] = False,
) -> None:
    """Measures our lines against other allocators."""
    from hakozuna_lab import bench as command
    from hakozuna_lab.selection import Wish

    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
    if resume:
        if len(lanes or []) > 1 or given - {"resume", "lanes"}:
            raise UsageError("--resume takes a file and nothing else: what is measured stands in it")
        command.go_on(Path(lanes[0]) if lanes else None)
        return
    if count:
        if odd := given - {"count", "lanes", "lines", "peers", "peer", "env", "out"}:
            raise UsageError(f"--count has no use for --{min(odd).replace('_', '-')}: each program runs once, as it is")
        from hakozuna_lab import count as counting

        wanted = command.Request(Wish(), words(lines), words(peers), peer or [], env or [], out=out)
        counting.main(wanted, lanes or [], sys.argv[2:])
        return
    wish = Wish(
        words=tuple(lanes or ()),
        quick=quick,
        full=full,
        threads=thread_counts(threads),
        modes=(mode or (Mode.BOTH if full else Mode.FAIR)).names,
        sweep=sweep or "",
        iterations=iterations,
        equal_work=equal_work,
        touched=not untouched,
        written=written,
        settle=settle,
    )
    request = command.Request(wish, words(lines), words(peers), peer or [], env or [], runs, seed, out)
    command.main(request, sys.argv[2:])


@app.command()
def ab(
    sides: Annotated[
        list[str] | None,
        typer.Argument(help="LINE_A LINE_B [LANES…]; with --set [LINE] [LANES…]; NAME=LIBRARY is a line, too"),
    ] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="key=value, for side B; may repeat")] = None,
    threads: Threads = "",
    mode: Mode = Mode.FAIR,
    iterations: Iterations = None,
    seed: Seed = None,
    out: Out = None,
) -> None:
    """Two lines, or two values of an option, until the answer is clear."""
    from hakozuna_lab import ab as command

    if mode is Mode.BOTH:
        raise UsageError("hz ab measures one mode at a time")
    request = command.Request(sides or [], setting or [], thread_counts(threads), mode.value, iterations, seed, out)
    command.main(request, sys.argv[2:])


@app.command()
def scale(
    lanes: Annotated[list[str] | None, typer.Argument(help="lanes (guard_r0, guard_r50, main_r0, _r50, _r90)")] = None,
    lines: Annotated[str, typer.Option(help="our lines, with commas, `all` or `none` (the default line)")] = "",
    peers: Annotated[str, typer.Option(help="with commas; `newest`, `default`, `all` or `hardened` (none)")] = "",
    peer: Annotated[list[str] | None, typer.Option(help="NAME=LIBRARY, one more peer; may repeat")] = None,
    env: Annotated[list[str] | None, typer.Option(help="CONTENDER=KEY=VALUE, a setting; may repeat")] = None,
    threads: Annotated[str, typer.Option(help="numbers of threads, with commas (2,8,32,64)")] = "",
    warm_up: Annotated[int, typer.Option(min=1, help="calls of each thread before those that are counted")] = 12_000,
    calls: Annotated[int, typer.Option(min=1, help="of each thread that are counted")] = 4_000,
    hottest: Annotated[int, typer.Option(min=0, help="cache lines of which the code is named")] = 3,
    out: Annotated[Path | None, typer.Option(help="file for the tables (bench/results/<time>-scale.md)")] = None,
) -> None:
    """Counts what passes between simulated cores: how an allocator would do on a machine with many."""
    from hakozuna_lab import scale as command

    request = command.Request(
        lanes or [],
        words(lines),
        words(peers),
        peer or [],
        env or [],
        thread_counts(threads),
        warm_up,
        calls,
        hottest,
        out,
    )
    command.main(request, sys.argv[2:])


@app.command()
def endure(
    services: Annotated[list[str] | None, typer.Argument(help="services (all)")] = None,
    hours: Annotated[float, typer.Option(help="for how long; 0.05 for a trial")] = 8.0,
    line: Annotated[str, typer.Option(help="our line (the default line)")] = "",
    out: Annotated[Path, typer.Option(help="folder for the page and the pictures")] = ROOT / "build/endure",
) -> None:
    """Services under load for hours, trouble thrown at them, and whether their memory drifts."""
    from hakozuna_lab.contender import line_names
    from hakozuna_lab.endurance import run as command

    command.main(services or [], hours, line or line_names()[0], out)


@app.command()
def peers(
    names: Annotated[list[str] | None, typer.Argument(help="peers (all)")] = None,
    build: Annotated[bool, typer.Option("--build", help="get and build them, and prove that they serve")] = False,
) -> None:
    """The allocators to compare with: what they are, where they are, and what is missing."""
    from hakozuna_lab import peers as command

    command.main(names or [], build)


@app.command()
def report(
    files: Annotated[list[Path] | None, typer.Argument(help="results (the latest), or a page of programs, .md")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the page and the pictures")] = None,
) -> None:
    """Makes one HTML page, and pictures, of stored results."""
    from hakozuna_lab import report as command

    command.main(files or [], out)


def main() -> None:
    try:
        app(prog_name="hz")
    except (LabError, OSError) as error:
        print(f"hz: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 125)
