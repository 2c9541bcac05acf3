# SPDX-License-Identifier: Apache-2.0
"""`hz prof`: who asked for a program's memory, from its heap profile; and `hz run --profile-heap`, which makes one.

Tables of 80 to 120 columns for people; JSON, pprof's form, folded stacks and a flame graph for other programs.
__main__.py calls it. Costs about a second for 10,000 sites, beside what finding names costs (symbols.py).
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hakozuna_observe import flame, pprof, profile, text
from hakozuna_observe.process import MISUSE, UnseenError, one_line, open_regular, pid_of, printable, shortened
from hakozuna_observe.profile import BUCKETS, UNREADABLE, Figures, Profile
from hakozuna_observe.symbols import Frame, Names, short, without_interpreter, without_library

LEAKS_FOUND = 1  # the exit code of --leaks
LEAKS_AFTER_RUN = 99  # of `hz run --leaks`, where the program's own would be 0
FAILED = 125
_ALIKE = 5  # stacks whose innermost functions are the same, so many of them, are one row
_COARSE = 20_000_000  # nanoseconds by which the times of files may be behind the clock
_PLACED = 2  # of these the lines are shown, and make rows different
_NARROWEST = 32  # columns in which a stack is readable
_CHANCE = 2.0  # standard errors that a change has to pass to be shown
_SHORT, _MIDDLE = 10, 20  # lifetimes below these buckets: under about a millisecond, under about a second

Stack = tuple[Frame, ...]  # the innermost first


@dataclass
class Read:
    """Profiles with names, as one."""

    profiles: list[Profile]
    names: Names
    named: list[dict[int, Stack]]
    sites: list[tuple[Stack, Figures]]  # those of the same names together

    @property
    def interval(self) -> int:
        """The largest: figures are at least as good as it makes them."""
        return max((one.interval for one in self.profiles), default=0)

    def sum(self) -> Figures:
        """Of all sites."""
        total = Figures()
        for _, figures in self.sites:
            total.add(figures)
        return total


def read(sources: Sequence[str], names: Names) -> Read:
    """Processes by their numbers, files by their names."""
    return read_each([sources], names)[0]


def read_each(groups: Sequence[Sequence[str]], names: Names) -> list[Read]:
    """Several, and names for all of them at once."""
    loaded = [[one for source in sources for one in _load(source)] for sources in groups]
    named = names.of([one for profiles in loaded for one in profiles])
    each = []
    for profiles in loaded:
        theirs, named = named[: len(profiles)], named[len(profiles) :]
        together: dict[Stack, Figures] = {}
        for one, frames in zip(profiles, theirs, strict=True):
            for site in one.sites:
                whole = tuple(frame for address in site.stack for frame in frames[address])
                stack = without_interpreter(whole) or (Frame("[no stack]"),)
                together.setdefault(stack, Figures()).add(site.figures)
        each.append(Read(profiles, names, theirs, list(together.items())))
    return each


def _load(source: str) -> list[Profile]:
    if not (source.isascii() and source.isdigit()):
        return [profile.read(source)]
    pid = pid_of(source)
    if pid is None:
        raise UnseenError(f"'{shortened(source)}' is no process id", MISUSE)
    try:
        return profile.of_process(pid)
    except UnseenError as why:
        raise UnseenError(str(why), UNREADABLE if why.code == 1 else why.code) from None


# --- tables


def _width() -> int:
    return min(max(shutil.get_terminal_size((120, 24)).columns, 80), 120)


def _cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 1] + "…"


def _count(number: int) -> str:
    return f"{number:,}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def duration(microseconds: float) -> str:
    """`3 ms`: of one unit, rounded."""
    value, unit = microseconds, "µs"
    for most, factor, next_unit in (
        (1000, 1000, "ms"),
        (1000, 1000, "s"),
        (120, 60, "min"),
        (120, 60, "h"),
        (48, 24, "d"),
    ):
        if value < most:
            break
        value, unit = value / factor, next_unit
    return f"{value:.0f} {unit}"


def lifetime(figures: Figures) -> str:
    """The median: `~3 ms`; `stays` where half of the blocks or more have not been freed."""
    if figures.samples == 0:
        return "-"
    if 2 * figures.freed <= figures.samples:
        return "stays"
    passed, half = 0, figures.samples / 2
    for bucket, many in enumerate(figures.lifetimes):
        passed += many
        if passed >= half:
            if bucket == 0:
                return "<2 µs"
            if bucket == BUCKETS - 1:
                return f">{duration(1 << bucket)}"
            middle = 2**0.5 * (1 << bucket)
            return f"~{duration(float(f'{middle:.0e}'))}"
    return "stays"


def title(one: Read) -> str:
    """Whose profile it is."""
    if len(one.profiles) == 1:
        only = one.profiles[0]
        return one_line(f"{only.name} {only.pid}: line {only.line} {only.release}, up {duration(only.uptime)}")
    programs = sorted({one_line(each.name) for each in one.profiles})
    return f"{len(one.profiles)} processes together: {', '.join(programs)}"


def facts(one: Read) -> list[str]:
    """The sums, and how they were come by."""
    total = one.sum()
    amounts = (f"{by} {text.size(total.bytes_of(by))} in {_count(total.blocks_of(by))}" for by in profile.MEASURES)
    return [f"{', '.join(amounts)} blocks", *notes(one)]


def notes(one: Read) -> list[str]:
    """How good the figures are."""
    total = one.sum()
    dropped = sum(each.dropped for each in one.profiles)
    rows = [f"estimated from {_count(total.samples)} samples, one each {text.size(one.interval)}"]
    if total.samples == 0:
        rows.append(
            "no block was sampled: too little was allocated for this interval; a smaller HZ_PROFILE_HEAP sees more"
        )
    if any(each.hides_objects for each in one.profiles):
        rows.append(
            "Python keeps objects of up to 512 bytes in an allocator of its own, of which no block is seen: "
            "start it with PYTHONMALLOC=malloc"
        )
    if dropped:
        rows.append(f"{_count(dropped)} samples more had no room in the process's tables: figures are too low")
    return rows


@dataclass
class _Row:
    frames: Stack
    figures: Figures


def _alike(sites: Sequence[tuple[Stack, Figures]], lines: int) -> dict[tuple[tuple[str, int], ...], _Row]:
    """Stacks that differ only far away from malloc are one row; so many of their frames count with their lines."""
    rows: dict[tuple[tuple[str, int], ...], _Row] = {}
    for stack, figures in sites:
        frames = without_library(stack)
        key = tuple((frame.function, frame.line if i < lines else 0) for i, frame in enumerate(frames[:_ALIKE]))
        row = rows.setdefault(key, _Row(frames, Figures()))
        row.figures.add(figures)
        if any(one.line != other.line for one, other in zip(row.frames[:_PLACED], frames, strict=False)):
            row.frames = tuple(replace(frame, line=0) for frame in row.frames)
    return rows


def _callers(frames: Stack, width: int) -> list[str]:
    """The innermost function, and in a second line who called it; two of them with their places."""
    names: list[str] = []
    for i, frame in enumerate(frames[:_ALIKE]):
        place = f" ({frame.place})" if frame.place and i < _PLACED else ""
        name = one_line(short(frame.function) + place)
        if i < _PLACED or names[-1] != name:
            names.append(name)
    lines = [names[0], *(["< " + " < ".join(names[1:])] if names[1:] else [])]
    return [_cut(line, width) for line in lines]


def _table(head: str, rows: Sequence[tuple[str, Stack]], width: int) -> list[str]:
    """Columns that were made up before, and beside them, or where there is no room below them, the stack."""
    is_beside = width - len(head) >= _NARROWEST
    indent = " " * (len(head) + 2 if is_beside else 4)
    lines = [f"{head}  site, and who called it" if is_beside else head]
    for columns, frames in rows:
        callers = [indent + line for line in _callers(frames, width - len(indent))]
        lines += [columns + callers.pop(0)[len(columns) :]] if is_beside else [columns]
        lines += callers
    return [line.rstrip() for line in lines]


def _head(one: Read, width: int) -> list[str]:
    return [line for fact in (title(one), *facts(one)) for line in textwrap.wrap(fact, width)]


def _left(many: int, top: int) -> list[str]:
    return [f"({many - top} more: --top {many})"] if many > top else []


def table(one: Read, by: str, top: int, width: int) -> list[str]:
    """The sites that hold most."""
    total = one.sum()
    rows = [row for row in _alike(one.sites, _PLACED).values() if row.figures.bytes_of(by)]
    rows.sort(key=lambda row: -row.figures.bytes_of(by))
    lines = [*_head(one, width), ""]
    if not rows:
        if total.samples:
            lines.append(f"nothing is {by}; --by allocated shows what was")
        return lines if total.samples else lines[:-1]
    head = f"{by:>9} {'share':>6} {'±':>4} {'blocks':>11} {'lifetime':>8}"
    made = []
    for row in rows[:top]:
        figures = row.figures
        error = figures.error_of(by, one.interval) / figures.bytes_of(by)
        made.append(
            (
                f"{text.size(figures.bytes_of(by)):>9} {_share(figures.bytes_of(by), total.bytes_of(by)):>6} "
                f"{error:>4.0%} {_count(figures.blocks_of(by)):>11} {lifetime(figures):>8}",
                row.frames,
            )
        )
    return [*lines, *_table(head, made, width), *_left(len(rows), top)]


def lifetimes(one: Read, top: int, width: int) -> list[str]:
    """Who allocates for a moment, and who for long: by samples, for each was followed to its end."""
    rows = [row for row in _alike(one.sites, _PLACED).values() if row.figures.samples]
    rows.sort(key=lambda row: -row.figures.allocated_bytes)
    lines = [*_head(one, width), ""]
    if not rows:
        return lines[:-1]
    head = f"{'allocated':>9} {'<1 ms':>6} {'<1 s':>6} {'longer':>6} {'stays':>6}  1µs       1ms       1s  "
    made = []
    for row in rows[:top]:
        figures = row.figures
        parts = (
            sum(figures.lifetimes[:_SHORT]),
            sum(figures.lifetimes[_SHORT:_MIDDLE]),
            sum(figures.lifetimes[_MIDDLE:]),
            max(figures.samples - figures.freed, 0),
        )
        shares = " ".join(f"{100 * part / figures.samples:>5.0f}%" for part in parts)
        bars = text.bars(figures.lifetimes)
        made.append((f"{text.size(figures.allocated_bytes):>9} {shares}  {bars}", row.frames))
    return [*lines, *_table(head, made, width), *_left(len(rows), top)]


def difference(before: Read, after: Read, by: str, top: int, width: int) -> list[str]:
    """What grew and what shrank, beyond what the choice of samples explains."""
    interval = max(before.interval, after.interval)
    old, new = _alike(before.sites, 0), _alike(after.sites, 0)  # a line may move
    none = Figures()
    changes = []
    within = 0
    for key in {**old, **new}:
        was = old[key].figures if key in old else none
        now = new[key].figures if key in new else none
        change = now.bytes_of(by) - was.bytes_of(by)
        error = (was.error_of(by, interval) ** 2 + now.error_of(by, interval) ** 2) ** 0.5
        if change == 0 or abs(change) <= _CHANCE * error:
            within += change != 0
            continue
        changes.append((change, was, now, (new[key] if key in new else old[key]).frames))
    total_was, total_now = before.sum().bytes_of(by), after.sum().bytes_of(by)
    lines = [
        f"before  {title(before)}",
        f"after   {title(after)}",
        f"{by} {text.size(total_was)} before, {text.size(total_now)} after: {_signed(total_now - total_was)}",
    ]
    head = f"{'change':>10} {'before':>9} {'after':>9} {'blocks':>12}"
    for name, of_kind in (
        ("grown", sorted((one for one in changes if one[0] > 0), key=lambda one: -one[0])),
        ("shrunk", sorted((one for one in changes if one[0] < 0), key=lambda one: one[0])),
    ):
        if not of_kind:
            lines += ["", f"{name}: nothing"]
            continue
        made = [
            (
                f"{_signed(change):>10} {text.size(was.bytes_of(by)):>9} {text.size(now.bytes_of(by)):>9} "
                f"{now.blocks_of(by) - was.blocks_of(by):>+12,}",
                frames,
            )
            for change, was, now, frames in of_kind[:top]
        ]
        lines += ["", f"{name}:", *_table(head, made, width), *_left(len(of_kind), top)]
    if within:
        sites = f"{within} sites" if within > 1 else "1 site"
        lines += ["", f"{sites} changed by no more than the choice of samples may explain"]
    return lines


def _signed(count: int) -> str:
    return f"{'+' if count > 0 else '-' if count < 0 else ''}{text.size(abs(count))}"


# --- leaks


def ignored(path: str) -> list[re.Pattern[str]]:
    """Patterns as LeakSanitizer's suppressions have them: a part of a name of a function, source or library; * is
    anything, ^ and $ are its ends. `leak:` may stand before."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UnseenError(f"{path}: {error.strerror or error}", MISUSE) from None
    patterns = []
    for number, line in enumerate(lines, 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        kind = re.match(r"([a-z_]+):(?!:)", words)
        if kind is not None and kind[1] != "leak":
            raise UnseenError(f"{path}: line {number}: only leak: is known, not {kind[1]}:", MISUSE)
        words = words[len(kind[0]) :] if kind is not None else words
        begin, end = words.startswith("^"), words.endswith("$")
        words = words[begin : len(words) - end]
        if not words.strip("*"):
            raise UnseenError(f"{path}: line {number}: this would ignore all", MISUSE)
        inside = ".*".join(map(re.escape, words.split("*")))
        patterns.append(re.compile(("^" if begin else "") + inside + ("$" if end else ""), re.DOTALL))
    return patterns


def _is_ignored(stack: Stack, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(
        one.search(name)
        for one in patterns
        for frame in stack
        for name in (frame.function, frame.file, frame.module)
        if name
    )


def leaks(
    one: Read, at_least: int, patterns: Sequence[re.Pattern[str]], top: int, width: int
) -> tuple[list[str], bool]:
    """What is live, by whole stacks; and whether there is any."""
    live = [(stack, figures) for stack, figures in one.sites if figures.live_bytes >= max(at_least, 1)]
    live.sort(key=lambda site: -site[1].live_bytes)
    told = [site for site in live if not _is_ignored(site[0], patterns)]
    left_out = Figures()
    for stack, figures in live:
        if patterns and _is_ignored(stack, patterns):
            left_out.add(figures)
    is_running = any(each.root is not None for each in one.profiles)
    when = "live now" if is_running else "live at the end"
    lines = [title(one)]
    for stack, figures in told[:top]:
        samples = max(round(figures.live_bytes * figures.samples / max(figures.allocated_bytes, 1)), 1)
        blocks = f"{_count(figures.live_blocks)} block{'' if figures.live_blocks == 1 else 's'}"
        lines += [
            "",
            f"{text.size(figures.live_bytes)} in {blocks} {when}, estimated from {samples} "
            f"sample{'' if samples == 1 else 's'}:",
        ]
        for number, frame in enumerate(stack):
            place = f"  {frame.file}:{frame.line}" if frame.file and frame.line else ""
            lines.append(_cut(one_line(f"  #{number:<2} {short(frame.function)}{place}"), width))
    lines += _left(len(told), top)
    sum_of = Figures()
    for _, figures in told:
        sum_of.add(figures)
    sites = f"{len(told)} stack{'' if len(told) == 1 else 's'}"
    lines += ["", f"leaks: {text.size(sum_of.live_bytes)} of {sites}" if told else "leaks: none"]
    if left_out.live_bytes:
        lines[-1] += f"; {text.size(left_out.live_bytes)} were ignored"
    return [*lines, *(line for note in notes(one) for line in textwrap.wrap(note, width))], bool(told)


# --- for other programs


def as_json(one: Read) -> str:
    """One line."""
    processes = [
        {
            "pid": each.pid,
            "program": each.program,
            "line": each.line,
            "release": each.release,
            "written": each.written,
            "uptime_us": each.uptime,
            "interval": each.interval,
            "dropped": each.dropped,
        }
        for each in one.profiles
    ]
    sites = [
        asdict(figures)
        | {
            "frames": [
                {"function": each.function, "file": each.file, "line": each.line, "module": each.module}
                for each in stack
            ]
        }
        for stack, figures in sorted(one.sites, key=lambda site: -site[1].live_bytes)
    ]
    return json.dumps({"hz": "prof", "processes": processes, "sites": sites}, separators=(",", ":"))


def folded(one: Read, by: str) -> str:
    """A line a stack, main first: what flamegraph.pl and speedscope read."""
    rows: dict[str, int] = {}
    for stack, figures in one.sites:
        if figures.bytes_of(by):
            names = (one_line(re.sub(r"\s", " ", frame.function.replace(";", ":"))) for frame in reversed(stack))
            key = ";".join(names)
            rows[key] = rows.get(key, 0) + figures.bytes_of(by)
    return "".join(f"{stack} {amount}\n" for stack, amount in sorted(rows.items()))


def _write(path: str, content: bytes) -> None:
    try:
        if path == "-":
            sys.stdout.buffer.write(content)
            return
        Path(path).write_bytes(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnseenError(f"{path}: {error.strerror or error}", FAILED) from None
    print(f"hz: wrote {path}", file=sys.stderr)


# --- the commands


def run(options: argparse.Namespace) -> int:
    """`hz prof`."""
    _check(options)
    names = Names(not options.no_names)
    patterns = ignored(options.ignore) if options.ignore else []
    before: Read | None = None
    if options.diff:
        before, one = read_each([[source] for source in options.sources], names)
    else:
        one = read(options.sources, names)
    for note in names.notes:
        print(printable(f"hz: {note}"), file=sys.stderr)
    is_written = False
    for path, make in _outputs(options, one, before):
        if path:
            _write(path, make())
            is_written = True
    width = _width()
    if options.json:
        print(as_json(one))
    elif options.leaks:
        lines, found = leaks(one, options.at_least or 1, patterns, options.top, width)
        print("\n".join(lines))
        return LEAKS_FOUND if found else 0
    elif options.lifetimes:
        print("\n".join(lifetimes(one, options.top, width)))
    elif is_written:
        pass
    elif before is not None:
        print("\n".join(difference(before, one, options.by, options.top, width)))
    else:
        print("\n".join(table(one, options.by, options.top, width)))
    return 0


def _check(options: argparse.Namespace) -> None:
    is_alone = not (options.flame or options.folded or options.pprof)
    if options.by is not None and is_alone and (options.leaks or options.lifetimes or options.json):
        raise UnseenError("--by goes with the table, --diff and what is written for other programs", MISUSE)
    if options.top is not None and options.json:
        raise UnseenError("--top goes with tables", MISUSE)
    options.by, options.top = options.by or "live", options.top or 20
    if options.diff and len(options.sources) != 2:
        raise UnseenError("--diff compares two: BEFORE AFTER", MISUSE)
    if options.diff and (options.pprof or options.folded or options.save):
        raise UnseenError("of --diff there is the table and --flame; pprof has -diff_base itself", MISUSE)
    if not options.leaks and (options.ignore or options.at_least is not None):
        raise UnseenError("--ignore and --at-least belong to --leaks", MISUSE)
    if options.save and len(options.sources) != 1:
        raise UnseenError("--save is of one profile", MISUSE)


def _outputs(
    options: argparse.Namespace, one: Read, before: Read | None
) -> list[tuple[str | None, Callable[[], bytes]]]:
    def page() -> bytes:
        about = [title(one), *facts(one)]
        if before is not None:
            about = [f"before: {title(before)}", *facts(before), f"after: {title(one)}", *facts(one)]
        head = "heap profile: " if before is None else "heap profiles: what changed in "
        sites = before.sites if before is not None else None
        return flame.render(head + one_line(one.profiles[0].name), about, options.by, one.sites, sites).encode()

    return [
        (options.save, lambda: profile.write(one.profiles[0]).encode("utf-8", "replace")),
        (options.pprof, lambda: pprof.render(one.profiles, one.names, one.named, options.by)),
        (options.folded, lambda: folded(one, options.by).encode("utf-8", "replace")),
        (options.flame, page),
    ]


def _is_free_threaded(program: str) -> bool:
    """Whether a program, or what runs a script, is a CPython without a lock: it refuses other allocators."""
    path = shutil.which(program)
    if path is None:
        return False
    words = [os.path.realpath(path)]
    try:
        with open_regular(Path(path)) as file:
            first = file.readline(256)
        if first.startswith(b"#!"):
            words = first[2:].decode("utf-8", "replace").split()
    except OSError:
        pass
    found = (os.path.realpath(shutil.which(word) or word) for word in words)
    return any(re.fullmatch(r"python3\.[0-9]+t", Path(one).name) for one in found)


def profile_a_run(options: argparse.Namespace) -> int:
    """`hz run --profile-heap`: runs the program, then says where its profile is, and with --leaks what leaked. What the
    program gets of the environment is what the launcher says."""
    pattern = os.environ.get("HZ_PROFILE_HEAP_FILE") or str(Path.cwd() / "hakozuna.%p.heap")
    folder = Path(pattern).absolute().parent
    if "%p" not in str(folder) and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise UnseenError(f"{pattern}: cannot be written", FAILED)
    variables = os.environ | {"HZ_PROFILE_HEAP": options.interval, "HZ_PROFILE_HEAP_FILE": pattern}
    if "PYTHONMALLOC" not in variables and not _is_free_threaded(options.program[0]):
        variables["PYTHONMALLOC"] = "malloc"  # else Python's small objects are in no profile
    began = time.time_ns() - _COARSE
    # A shell of its own sets the preload, so that neither it nor this Python is served; its exec has env's exit codes.
    script = 'LD_PRELOAD=$1; export LD_PRELOAD; shift; exec "$@"'
    # The terminal tells the program as well.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}

    def as_before() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if handler == signal.SIG_IGN else signal.SIG_DFL)

    pids: list[int] = []
    early: list[int] = []  # came before the program did

    def pass_on(number: int, _: object) -> None:
        if not pids:
            early.append(number)
        for one in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    with subprocess.Popen(
        ["/bin/sh", "-c", script, "hz", options.preload, *options.program],
        env=variables,
        preexec_fn=as_before,
    ) as child:
        pid = child.pid
        pids.append(pid)
        for sent in early:
            pass_on(sent, None)
        code = child.wait()
    for number, handler in before.items():
        signal.signal(number, handler)
    status = code if code >= 0 else 128 - code
    own = Path(pattern.replace("%p", str(pid)))
    others = [
        file
        for file in Path(pattern).parent.glob(glob.escape(Path(pattern).name).replace("%p", "*"))
        if file != own and file.stat().st_mtime_ns >= began
    ]
    if not own.exists() or own.stat().st_mtime_ns < began:
        how = f"was ended by signal {-code}, and " if code < 0 else ""
        print(f"hz: {options.program[0]} {how}wrote no heap profile", file=sys.stderr)
        return FAILED if options.leaks and status == 0 else status
    more = f", and of processes that it started {len(others)} more" if others else ""
    print(f"hz: the heap profile is {own}{more}; hz prof FILE shows it", file=sys.stderr)
    if not options.leaks:
        return status
    lines, found = leaks(read([str(own)], Names()), 1, [], 20, _width())
    print("\n".join(lines), file=sys.stderr)
    return LEAKS_AFTER_RUN if found and status == 0 else status
