# SPDX-License-Identifier: Apache-2.0
"""The command line of the lab. It only parses, with python's library; each command's work is in the module that it
imports when it is called, so that a command costs the start of its own modules alone."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hakozuna_lab import LabError, UsageError
from hakozuna_lab.arguments import Parser, duration, number, thread_counts, words, writable
from hakozuna_lab.contender import line_names, parse_contender, parse_setting
from hakozuna_lab.paths import LANE, ROOT
from hakozuna_lab.peer_list import check_names
from hakozuna_lab.selection import Wish

MODES = {"fair": ("fair",), "upstream": ("upstream",), "both": ("fair", "upstream")}


def add_contenders(command: argparse.ArgumentParser, peers: str) -> None:
    command.add_argument(
        "--lines",
        type=words,
        default=[],
        metavar="NAMES",
        help="our lines, with commas, `all` or `none` (the default line); the first is judged",
    )
    command.add_argument("--peers", type=words, default=[], metavar="NAMES", help=peers)
    command.add_argument(
        "--peer", action="append", default=[], metavar="NAME=LIBRARY", help="one more peer; may repeat"
    )
    command.add_argument(
        "--env", action="append", default=[], metavar="CONTENDER=KEY=VALUE", help="a setting; may repeat"
    )


def add_cells(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--threads", type=thread_counts, default=(), metavar="N,N", help="numbers of threads, with commas (2,16)"
    )
    command.add_argument("--iterations", type=number(1), metavar="N", help="per thread, instead of the lane's own")
    command.add_argument("--seed", type=number(0), metavar="N", help="of the lanes' random numbers")
    command.add_argument(
        "--out", type=writable, metavar="FILE", help="file for the results (bench/results/<time>-<name>.jsonl)"
    )


def parser() -> Parser:
    top = Parser(prog="hz")
    commands = top.add_subparsers(dest="command", required=True)
    bench = commands.add_parser(
        "bench", prog="hz bench", description="Measures our lines against other allocators. doc/lab.md says how."
    )
    bench.add_words(
        "lanes",
        metavar="LANE",
        help="lanes, families, globs, `guard`, `programs`, program/case; with --resume the file",
    )
    bench.add_argument("--quick", action="store_true", help="a few short cells, under 10 minutes on 2 CPUs")
    bench.add_argument("--full", action="store_true", help="every lane, fair and upstream; takes hours")
    bench.add_argument(
        "--sweep", choices=("threads", "remote"), default="", help="over numbers of threads or shares of remote frees"
    )
    add_contenders(
        bench, "with commas; `newest`, `default`, `all`, `hardened` or `none` (all; with --quick and --count newest)"
    )
    bench.add_argument("--runs", type=number(1, 1000), metavar="N", help="rounds (7; with --quick 5)")
    add_cells(bench)
    bench.add_argument("--mode", choices=MODES, help="fair unless --full")
    bench.add_argument("--equal-work", action="store_true", help="more than 2 threads share the iterations of 2")
    bench.add_argument("--untouched", action="store_true", help="do not write into the blocks")
    bench.add_argument(
        "--written", action="store_true", help="write blocks in full (lanes with a share of remote frees)"
    )
    bench.add_argument(
        "--settle",
        type=number(1),
        metavar="N",
        help="milliseconds before memory is read idle, and after (50; of servers 2000)",
    )
    bench.add_argument(
        "--count", action="store_true", help="instructions of whole programs, by callgrind: `programs`, or names"
    )
    bench.add_argument("--resume", action="store_true", help="go on with an interrupted file (the latest)")

    ab = commands.add_parser(
        "ab",
        prog="hz ab",
        description="Two lines, or two values of an option, until the answer is clear.",
    )
    ab.add_words(
        "sides",
        metavar="SIDE",
        help="LINE_A LINE_B [LANE...]; with --set [LINE] [LANE...]; NAME=LIBRARY is a line, too",
    )
    ab.add_argument(
        "--set", dest="setting", action="append", default=[], metavar="KEY=VALUE", help="for side B; may repeat"
    )
    add_cells(ab)
    ab.add_argument("--mode", choices=("fair", "upstream"), default="fair", help="(fair)")

    scale = commands.add_parser(
        "scale",
        prog="hz scale",
        description="Counts what passes between simulated cores: how an allocator would do on a machine with many.",
    )
    scale.add_words("lanes", metavar="LANE", help="(guard_r0, guard_r50, main_r0, _r50, _r90)")
    add_contenders(scale, "with commas; `newest`, `default`, `all` or `hardened` (none)")
    scale.add_argument("--threads", type=thread_counts, default=(), metavar="N,N", help="with commas (2,8,32,64)")
    scale.add_argument(
        "--warm-up",
        type=number(1),
        default=12_000,
        metavar="N",
        help="calls of each thread before those that are counted (12000)",
    )
    scale.add_argument(
        "--calls", type=number(1), default=4_000, metavar="N", help="of each thread that are counted (4000)"
    )
    scale.add_argument(
        "--hottest", type=number(0), default=3, metavar="N", help="cache lines of which the code is named (3)"
    )
    scale.add_argument(
        "--out", type=writable, metavar="FILE", help="file for the tables (bench/results/<time>-scale.md)"
    )

    endure = commands.add_parser("endure", prog="hz endure")  # hakozuna_lab.checks describes it
    endure.add_words("services", metavar="SERVICE")
    endure.add_argument("--hours", type=duration, default=8.0)
    endure.add_argument("--line", default="")
    endure.add_argument("--out", type=Path, default=ROOT / "build/endure")

    peers = commands.add_parser(
        "peers",
        prog="hz peers",
        description="Lists the allocators to compare with: what they are, where they are, and what is missing.",
    )
    peers.add_words("names", metavar="NAME", help="peers (all)")
    peers.add_argument("--build", action="store_true", help="get and build them, and prove that they serve")

    report = commands.add_parser(
        "report", prog="hz report", description="Makes one HTML page, and pictures, of stored results."
    )
    report.add_words("files", metavar="FILE", help="results (the latest), or a page of programs, .md")
    report.add_argument("--out", type=Path, metavar="DIR", help="folder for the page and the pictures")
    return top


def check(given: argparse.Namespace) -> None:
    """Refuses what needs neither a library nor a package to be known for wrong. Errors: UsageError."""
    lines = line_names()
    for name in getattr(given, "lines", []):
        if name not in (*lines, "je", "all", "none"):
            raise UsageError(f"there is no line '{name}'; the lines are: {' '.join(lines)}")
    if given.command in ("bench", "scale"):
        check_names([] if given.peers == ["none"] else given.peers)
        for text in given.peer:
            parse_contender(text)
    if given.command == "peers":
        check_names(given.names, groups=False)
    for file in given.files if given.command == "report" else []:
        if not Path(file).is_file():
            raise UsageError(f"there is no file {file}")
    if given.command == "bench":
        check_bench(given)
    if given.command == "ab":
        for text in given.setting:
            parse_setting(text)
        if len(given.sides) < 2 and not given.setting:
            raise UsageError("it needs two lines (or NAME=LIBRARY), or --set key=value")
        for word in given.sides[: 1 if given.setting else 2]:
            if "=" in word:
                parse_contender(word)
            elif word not in (*lines, "je") and not given.setting:
                raise UsageError(f"there is no line '{word}'; the lines are: {' '.join(lines)}")


def check_bench(given: argparse.Namespace) -> None:
    others = {
        name
        for name, value in vars(given).items()
        if name not in ("command", "lanes", "resume")
        and not (value is None or value is False or value == "" or value in ((), []))
    }
    if given.resume and (len(given.lanes) > 1 or others):
        raise UsageError("--resume takes a file and nothing else: what is measured stands in it")
    if given.resume and given.lanes and not Path(given.lanes[0]).is_file():
        raise UsageError(f"there is no file {given.lanes[0]}")
    if given.count and (odd := others - {"count", "lines", "peers", "peer", "env", "out"}):
        raise UsageError(f"--count has no use for --{min(odd).replace('_', '-')}: each program runs once, as it is")


def check_lanes(given: argparse.Namespace) -> None:
    """Refuses lanes that the program `lane` does not have. Errors: UsageError; LabError if it is not built."""
    from hakozuna_lab import ab as two
    from hakozuna_lab import catalogue
    from hakozuna_lab.programs import PROGRAMS
    from hakozuna_lab.selection import choose

    lanes = catalogue.read(LANE)
    if given.command == "bench" and not given.resume and not given.count:
        choose(wish_of(given), lanes, PROGRAMS)
    if given.command == "scale":
        catalogue.select(lanes, given.lanes)
    if given.command == "ab":
        sides = 2 if not given.setting else 1 if given.sides and two.is_side(given.sides[0]) else 0
        catalogue.select(lanes, given.sides[sides:])


def wish_of(given: argparse.Namespace) -> Wish:
    return Wish(
        words=tuple(given.lanes),
        quick=given.quick,
        full=given.full,
        threads=given.threads,
        modes=MODES[given.mode or ("both" if given.full else "fair")],
        sweep=given.sweep,
        iterations=given.iterations,
        equal_work=given.equal_work,
        touched=not given.untouched,
        written=given.written,
        settle=given.settle,
    )


def bench(given: argparse.Namespace, arguments: Sequence[str]) -> None:
    from hakozuna_lab import bench as command

    if given.resume:
        command.go_on(Path(given.lanes[0]) if given.lanes else None)
        return
    contenders = (given.lines, given.peers, given.peer, given.env)
    if given.count:
        from hakozuna_lab import count

        count.main(command.Request(Wish(), *contenders, out=given.out), given.lanes, arguments)
        return
    command.main(command.Request(wish_of(given), *contenders, given.runs, given.seed, given.out), arguments)


def ab(given: argparse.Namespace, arguments: Sequence[str]) -> None:
    from hakozuna_lab import ab as command

    command.main(
        command.Request(given.sides, given.setting, given.threads, given.mode, given.iterations, given.seed, given.out),
        arguments,
    )


def scale(given: argparse.Namespace, arguments: Sequence[str]) -> None:
    from hakozuna_lab import scale as command

    contenders = (given.lines, given.peers, given.peer, given.env)
    command.main(
        command.Request(given.lanes, *contenders, given.threads, given.warm_up, given.calls, given.hottest, given.out),
        arguments,
    )


def endure(given: argparse.Namespace, _: Sequence[str]) -> None:
    from hakozuna_lab.endurance import run as command

    command.main(given.services, given.hours, given.line or line_names()[0], given.out)


def peers(given: argparse.Namespace, _: Sequence[str]) -> None:
    from hakozuna_lab import peers as command

    command.main(given.names, given.build)


def report(given: argparse.Namespace, _: Sequence[str]) -> None:
    from hakozuna_lab import report as command

    command.main([Path(file) for file in given.files], given.out)


COMMANDS = {"bench": bench, "ab": ab, "scale": scale, "endure": endure, "peers": peers, "report": report}


def run(arguments: Sequence[str]) -> None:
    """Errors: LabError; SystemExit after a usage error of the grammar."""
    given = parser().parse_args(arguments)
    check(given)
    COMMANDS[given.command](given, arguments[1:])


def main() -> None:
    try:
        run(sys.argv[1:])
    except (LabError, OSError) as error:
        print(f"hz: error: {sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 125)
