# SPDX-License-Identifier: Apache-2.0
"""`hz stat`, `hz exporter` and `hz top`; each with --help. Exit codes: doc/observe.md."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Sequence

from hakozuna_observe import openmetrics, picture, text
from hakozuna_observe.layout import NOT_SERVED
from hakozuna_observe.process import UnseenError


def _as_json(one: picture.Picture) -> str:
    known = dataclasses.asdict(one)
    for each, written in zip(one.classes, known["classes"], strict=True):
        written["held_open"] = each.held_open
    return json.dumps({"hz": "stat"} | known | {"held_open": one.held_open}, separators=(",", ":"))


def _stat(options: argparse.Namespace) -> int:
    def once() -> str:
        pictures = picture.look(options.pid)
        if options.openmetrics:
            return openmetrics.render(pictures).rstrip("\n")
        if options.json:
            return "\n".join(_as_json(one) for one in pictures)
        return "\n\n".join(text.render(one, options.all) for one in pictures)

    if options.watch is None:
        print(once())
        return 0
    return _watch(once, options.watch, clear=not (options.json or options.openmetrics))


def _watch(once: Callable[[], str], seconds: float, clear: bool) -> int:
    """Until the process ends, which is no error then, or Ctrl-C."""
    looks = 0
    try:
        while True:
            page = once()
            print(("\x1b[H\x1b[2J" if clear and sys.stdout.isatty() else "") + page, flush=True)
            looks += 1
            time.sleep(seconds)
    except UnseenError as why:
        if looks == 0 or why.code == NOT_SERVED:
            raise
        print(f"hz stat: {why}", file=sys.stderr)
        return 0


def _exporter(options: argparse.Namespace) -> int:
    from hakozuna_observe import exporter

    return exporter.serve(options.listen)


def _top(options: argparse.Namespace) -> int:
    try:
        from hakozuna_observe import top
    except ImportError as error:
        raise UnseenError(f"hz top needs the Python package textual ({error}): pip install textual", 125) from None
    return top.run(options.every)


def _seconds(value: str) -> float:
    seconds = float(value)
    if not 0.05 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{value}: from 0.05 to 86400 seconds")
    return seconds


def _pid(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 2**31:
        raise argparse.ArgumentTypeError(f"'{value}' is no process id")
    return int(value)


class _Parser(argparse.ArgumentParser):
    """Errors are one line, and the exit code is that of `hz`."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(125, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hz")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    stat = commands.add_parser(
        "stat",
        help="what a running process holds",
        description="What a running process holds, by size class and thread. Read from outside: the process is neither "
        "changed nor stopped.",
        epilog="Exit: 0 shown; 1 it ended or never was; 3 it may not be looked into; 4 not served; 125 hz failed.",
    )
    stat.add_argument("pid", type=_pid, metavar="PID")
    form = stat.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one line of JSON")
    form.add_argument("--openmetrics", action="store_true", help="OpenMetrics text, as a scrape has it")
    stat.add_argument("--watch", type=_seconds, metavar="SECONDS", help="again every so many seconds, until it ends")
    stat.add_argument("--all", action="store_true", help="every size class and every thread")
    stat.set_defaults(run=_stat)

    exporter = commands.add_parser(
        "exporter",
        help="metrics of all processes that Hakozuna serves, over HTTP",
        description="Serves /metrics: OpenMetrics of all processes that Hakozuna serves and that may be looked into, "
        "read at each scrape.",
    )
    exporter.add_argument("--listen", default="127.0.0.1:9774", metavar="ADDRESS:PORT", help="(%(default)s)")
    exporter.set_defaults(run=_exporter)

    top = commands.add_parser(
        "top", help="all processes that Hakozuna serves, full screen", description="Keys: s sort, q quit, ? help."
    )
    top.add_argument("--every", type=_seconds, default=1.0, metavar="SECONDS", help="between two looks (%(default)s)")
    top.set_defaults(run=_top)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """What `hz` exits with."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except UnseenError as why:
        print(f"hz: {why}", file=sys.stderr)
        return why.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
