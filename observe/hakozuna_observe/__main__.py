# SPDX-License-Identifier: Apache-2.0
"""The commands of `hz` that look: stat, ctl, prof, explain, exporter, top. Exit codes: doc/observe.md."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hakozuna_observe import control, openmetrics, picture, stats_file, text
from hakozuna_observe.layout import NOT_SERVED
from hakozuna_observe.process import MISUSE, UnseenError, open_regular, pid_of, printable, shortened
from hakozuna_observe.profile import MEASURES

_MOST_REPORT = 64 << 20  # bytes of a log


def _as_json(one: picture.Picture) -> str:
    known = dataclasses.asdict(one)
    for each, written in zip(one.classes, known["classes"], strict=True):
        written["held_open"] = each.held_open
    sums = {"held_open": one.held_open, "trimmable": one.trimmable}
    return json.dumps({"hz": "stat"} | known | sums, separators=(",", ":"))


def _of_file(path: Path, options: argparse.Namespace) -> str:
    if options.openmetrics:
        raise UnseenError(f"{path} has sums alone, and no metrics of classes", MISUSE)
    one = stats_file.read(path)
    if options.json:
        return json.dumps({"hz": "stat"} | dataclasses.asdict(one), separators=(",", ":"))
    return text.render_file(one)


def _of_named_file(path: Path, options: argparse.Namespace) -> str:
    try:
        return _of_file(path, options)
    except UnseenError as why:
        raise UnseenError(str(why), MISUSE) from None


def _stat(options: argparse.Namespace) -> int:
    def once() -> str:
        if isinstance(options.pid, Path):
            return _of_named_file(options.pid, options)
        try:
            pictures = picture.look(options.pid)
        except UnseenError:
            file = None if options.dir is None else stats_file.path_in(options.dir, options.pid)
            if file is None or not file.exists():
                raise
            return _of_file(file, options)
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
        print(printable(f"hz: {why}"), file=sys.stderr)
        return 0


def _ctl(options: argparse.Namespace) -> int:
    if not control.supported():
        raise UnseenError("hz ctl is there on Linux alone; in the process there is hz_ctl()", 125)
    if options.verb == "list":
        rows = control.keys(options.pid)
        print(json.dumps(control.as_json(rows), separators=(",", ":")) if options.json else control.render(rows))
        return 0
    words = [word for word in (options.verb, options.key, options.value) if word is not None]
    print(control.ask(options.pid, " ".join(words)))
    return 0


def _wrong_words(options: argparse.Namespace) -> str:
    """Returns the options that do not go together; empty if all is well."""
    if options.run is _stat:
        if options.all and (options.json or options.openmetrics):
            return "--all goes with the table: the other forms have all classes and threads"
        return "--dir goes with a PID" if options.dir is not None and isinstance(options.pid, Path) else ""
    if options.run is not _ctl:
        return ""
    given = sum(word is not None for word in (options.key, options.value))
    least, most = {"list": (0, 0), "get": (1, 1), "set": (1, 2)}[options.verb]
    if not least <= given <= most:
        return "get KEY, set KEY [VALUE], or list"
    if options.key == "":
        return "KEY is empty"
    if options.json and options.verb != "list":
        return "--json goes with list"
    return ""


def _exporter(options: argparse.Namespace) -> int:
    from hakozuna_observe import exporter

    return exporter.serve(options.listen)


def _explain(options: argparse.Namespace) -> int:
    from hakozuna_observe import explain

    words = " ".join(options.report)
    if words in ("", "-"):
        if sys.stdin.isatty():
            print("hz: waits for a report on its input; Ctrl-D ends it", file=sys.stderr)
        text = sys.stdin.buffer.read(_MOST_REPORT).decode("utf-8", "replace")
    elif "hz: " in words:
        text = words
    else:
        try:
            with open_regular(Path(words)) as file:
                text = file.read(_MOST_REPORT).decode("utf-8", "replace")
        except OSError as why:
            raise UnseenError(f"{shortened(words)}: {why.strerror}", MISUSE) from None
    explained = explain.explain(text)
    if not explained:
        raise UnseenError("there is no report of ours in that: a line that begins with 'hz: fatal:' or 'hz: error:'", 1)
    print(printable(explained))
    return 0


def _prof(options: argparse.Namespace) -> int:
    from hakozuna_observe import prof

    return prof.run(options)


def _run(options: argparse.Namespace) -> int:
    from hakozuna_observe import prof

    return prof.profile_a_run(options)


def _top(options: argparse.Namespace) -> int:
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UnseenError("hz top needs a terminal; without one there is hz stat --watch", 125)
    try:
        from hakozuna_observe import top
    except ImportError as error:
        raise UnseenError(f"hz top needs the Python package textual ({error}): pip install textual", 125) from None
    return top.run(options.every)


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0
    if not 0.05 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"'{shortened(value)}' is no time from 0.05 to 86400 seconds")
    return seconds


def _pid(value: str) -> int:
    pid = pid_of(value)
    if pid is None:
        raise argparse.ArgumentTypeError(f"'{shortened(value)}' is no process id")
    return pid


def _pid_or_file(value: str) -> int | Path:
    """A number is a process, ./NUMBER a file."""
    pid = pid_of(value)
    if pid is not None:
        return pid
    if "/" not in value:
        with contextlib.suppress(OSError):  # too long
            if Path(value).exists():
                return Path(value)
        raise argparse.ArgumentTypeError(f"'{shortened(value)}' is no process id, and there is no such file")
    return Path(value)


def _size(value: str) -> int:
    number = value.rstrip("kKmMgG")
    unit = value[len(number) :].lower()
    if not number.isascii() or not number.isdigit() or len(unit) > 1 or len(number) > 15:
        raise argparse.ArgumentTypeError(f"'{shortened(value)}' is no size, as 65536, 64K, 1M or 2G")
    return int(number) << {"": 0, "k": 10, "m": 20, "g": 30}[unit]


def _positive(value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 9 or int(value) == 0:
        raise argparse.ArgumentTypeError(f"'{shortened(value)}' is no number from 1 to 999999999")
    return int(value)


class _Parser(argparse.ArgumentParser):
    """Errors are one line, and the exit code is that of `hz`. Options are written in full."""

    def __init__(self, **options: object) -> None:
        super().__init__(**{"allow_abbrev": False, **options})  # type: ignore[arg-type]

    def error(self, message: str) -> None:  # type: ignore[override]
        name = self.prog.removeprefix("hz ")
        self.exit(MISUSE, printable(f"hz: error: {name}: {message}; see {self.prog} --help") + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hz")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    stat = commands.add_parser(
        "stat",
        help="what a running process holds",
        description="Shows what a running process holds, by size class and thread. Read from outside: the process is "
        "neither changed nor stopped.",
        epilog="Exit: 0 shown; 1 it ended or never was; 2 usage error; 3 it may not be looked into; 4 not served; "
        "125 hz failed.",
    )
    stat.add_argument("pid", type=_pid_or_file, metavar="PID|FILE", help="a statistics file, as HZ_STATS_DIR has them")
    stat.add_argument("--dir", type=Path, help="read the process's file in DIR if the process cannot be read")
    form = stat.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one line of JSON")
    form.add_argument("--openmetrics", action="store_true", help="OpenMetrics text, as a scrape has it")
    stat.add_argument("--watch", type=_seconds, metavar="SECONDS", help="again every so many seconds, until it ends")
    stat.add_argument("--all", action="store_true", help="every size class and every thread")
    stat.set_defaults(run=_stat)

    ctl = commands.add_parser(
        "ctl",
        help="asks and sets the knobs of a running process",
        usage="hz ctl [-h] PID get KEY | set KEY [VALUE] | list [--json]",
        description="Asks and sets the knobs of a running process that was started with HZ_CONTROL=1, as its user or "
        "root. `set` without a VALUE runs an action: trim, purge, write_stats, write_profile, write_heap_profile.",
        epilog="Exit: 0 done; 1 it ended, never was, or does not answer; 2 refused: no such key, read at the start "
        "alone, not understood; 3 control is not permitted; 4 not served; 2 usage error; 125 hz failed.",
    )
    ctl.add_argument("pid", type=_pid, metavar="PID")
    ctl.add_argument("verb", choices=("get", "set", "list"))
    ctl.add_argument("key", nargs="?", metavar="KEY")
    ctl.add_argument("value", nargs="?", metavar="VALUE")
    ctl.add_argument("--json", action="store_true", help="of list: one line of JSON")
    ctl.set_defaults(run=_ctl)

    explained = commands.add_parser(
        "explain",
        help="what a report of a bad pointer means",
        description="Explains a report of a bad pointer: its code, its calls by file and line, and what to try next. "
        "From a file, from words in quotation marks, or from what is piped in; what is not ours in it is passed over.",
        epilog="Exit: 0 explained; 1 there is no report in it; 2 usage error; 125 hz failed.",
    )
    explained.add_argument(
        "report", nargs="*", metavar="FILE|TEXT", help="a log, or the line itself; none, or -: stdin"
    )
    explained.set_defaults(run=_explain)

    _add_prof(commands)
    # For the launcher alone: `hz run --profile-heap`.
    profiled = commands.add_parser("run")
    profiled.add_argument("--leaks", action="store_true")
    profiled.add_argument("--interval", required=True)
    profiled.add_argument("--preload", required=True)
    profiled.add_argument("program", nargs="+")
    profiled.set_defaults(run=_run)

    exporter = commands.add_parser(
        "exporter",
        help="metrics of all processes that Hakozuna serves, over HTTP",
        description="Serves /metrics: OpenMetrics of all processes that Hakozuna serves and that may be looked into, "
        "read at each scrape.",
    )
    exporter.add_argument("--listen", default="127.0.0.1:9774", metavar="ADDRESS:PORT", help="(%(default)s)")
    exporter.set_defaults(run=_exporter)

    top = commands.add_parser(
        "top", help="all processes that Hakozuna serves, full screen", description="Keys: s sort, p pause, q quit."
    )
    top.add_argument("--every", type=_seconds, default=1.0, metavar="SECONDS", help="between two looks (%(default)s)")
    top.set_defaults(run=_top)
    return parser


def _add_prof(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "prof",
        help="what a program's memory was asked for by",
        description="The heap profile of a program that runs, or ran, with HZ_PROFILE_HEAP: which functions asked for "
        "the memory that is live, was allocated, or was live at the peak. Several profiles are added up.",
        epilog="Exit: 0 shown, no leaks; 1 --leaks found some; 2 no such process or file, or no profile; 3 it may not "
        "be looked into; 4 not served; 2 usage error; 125 hz failed.",
    )
    parser.add_argument("sources", nargs="+", metavar="PID|FILE", help="a number is a process")
    parser.add_argument("--by", choices=MEASURES, help="what is compared (live)")
    parser.add_argument("--top", type=_positive, metavar="N", help="so many rows (20)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--diff", action="store_true", help="what grew and shrank between two profiles: BEFORE AFTER")
    form.add_argument(
        "--leaks", action="store_true", help="what is live, with whole stacks; exit code 1 if anything is"
    )
    form.add_argument("--lifetimes", action="store_true", help="show block lifetimes by call site")
    form.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--at-least", type=_size, metavar="BYTES", help="of --leaks: stacks with less are none")
    parser.add_argument("--ignore", metavar="FILE", help="of --leaks: skip stacks that match its patterns")
    parser.add_argument("--pprof", metavar="OUT", help="write pprof's form, gzipped: for go tool pprof, speedscope")
    parser.add_argument("--folded", metavar="OUT", help="write a line a stack: for flamegraph.pl, speedscope")
    parser.add_argument("--flame", metavar="OUT", help="write a flame graph, one HTML page")
    parser.add_argument("--save", metavar="OUT", help="write the profile of a process as it is now")
    parser.add_argument("--no-names", action="store_true", help="find no names of functions")
    parser.set_defaults(run=_prof)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code of `hz`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if wrong := _wrong_words(options):
        name = "ctl" if options.run is _ctl else "stat"
        parser.exit(MISUSE, f"hz: error: {name}: {wrong}; see hz {name} --help\n")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not each terminal has each character
    try:
        if sys.stdout is None:
            raise UnseenError("standard output is closed", 125)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except UnseenError as why:
        print(printable(f"hz: error: {why}"), file=sys.stderr)
        return why.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"hz: error: {error}", file=sys.stderr)
        with contextlib.suppress(OSError):  # what is left of the output is not tried again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 125


if __name__ == "__main__":
    sys.exit(main())
