# SPDX-License-Identifier: Apache-2.0
"""A picture for people: what is live, what is kept and by whom, and which spans are held open. 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from hakozuna_observe.picture import Picture, SizeClass
from hakozuna_observe.stats_file import StatsFile

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_BARS = " ▁▂▃▄▅▆▇█"
_MOST_CLASSES, _MOST_THREADS = 12, 8


def size(count: float) -> str:
    """`1.5 MiB`: three digits and a unit."""
    value = float(count)
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 99.95 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError  # the last unit takes all


def bars(counts: Sequence[int]) -> str:
    """A mark for each; the highest is the largest count, and none but zero is empty."""
    most = max(counts)
    if most == 0:
        return " " * len(counts)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts)


def fill_bars(one: SizeClass) -> str:
    """Ten marks: how many spans are so full, from the emptiest tenth to the fullest."""
    return bars(one.fill)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _rows(rows: list[tuple[str, int, str]]) -> list[str]:
    return [f"{name:<10}{size(value):>10}  {what}" for name, value, what in rows]


def _purges(stats: dict[str, int]) -> str:
    return f"{_many(stats.get('purges', 0), 'purge')} gave back {size(stats.get('bytes_purged', 0))}"


def _summary(picture: Picture) -> list[str]:
    stats = picture.stats
    threads_cache = sum(one.cached_bytes + one.outbox_bytes for one in picture.threads)
    between = max(stats["bytes_cached"] - threads_cache, 0)
    idle = sum(1 for one in picture.threads if one.revoked)
    by_whom = f"by {_many(stats['threads'], 'thread')} {size(threads_cache)}, between threads {size(between)}"
    rows = [
        ("live", stats["bytes_live"], "the program's blocks"),
        ("cached", stats["bytes_cached"], by_whom),
        ("held open", picture.held_open, "free memory in spans that some slot keeps in use"),
        ("dirty", stats["bytes_dirty"], "free, still backed by memory"),
        ("metadata", stats["bytes_metadata"], "the heap's own"),
        ("trim", picture.trimmable, "what a trim returns at least: dirty, free pages of spans"),
        ("peak", stats["bytes_peak"], "highest live and cached so far"),
    ]
    lines = _rows(rows)
    if picture.huge_blocks:
        blocks = _many(picture.huge_blocks, "block")
        lines.append(f"{'huge':<10}{size(picture.huge_bytes):>10}  of live, in {blocks} with pages of their own")
    if picture.sampled_blocks:
        blocks = _many(picture.sampled_blocks, "block")
        lines.append(f"{'samples':<10}{size(picture.sampled_bytes):>10}  of live, in {blocks} of the heap profile")
    purger = f"purger {picture.purger}; {_purges(stats)}"
    if stats["threads"]:
        purger += f"; {idle} of {_many(stats['threads'], 'thread')} idle"
    lines.append(purger)
    limits = [
        f"{name} {size(value)}"
        for name, value in (("soft", picture.limit_soft), ("hard", picture.limit_hard))
        if value is not None
    ]
    if limits:
        lines.append("limits: " + ", ".join(limits))
    return lines


def _classes(picture: Picture, everything: bool) -> list[str]:
    by_cost = sorted(picture.classes, key=lambda one: -(one.held_open + one.cached_bytes))
    shown = by_cost if everything else by_cost[:_MOST_CLASSES]
    if not shown:
        return []
    more = len(picture.classes) - len(shown)
    title = "size classes, by what they keep beside live blocks" + (f" ({more} more: --all)" if more else "")
    head = f"{'size':>9} {'spans':>7} {'out':>10} {'cached':>10} {'held open':>10}   0% full 100%"
    rows = [
        f"{size(one.size):>9} {one.spans:>7} {size(one.out_bytes):>10} {size(one.cached_bytes):>10} "
        f"{size(one.held_open):>10}   |{fill_bars(one)}|"
        for one in shown
    ]
    return ["", title, head, *rows]


def _threads(picture: Picture, everything: bool) -> list[str]:
    caching = [one for one in picture.threads if one.cached_bytes or one.outbox_bytes]
    shown = picture.threads if everything else caching[:_MOST_THREADS]
    if not shown:
        return []
    more = len(picture.threads) - len(shown)
    title = "threads, by what they cache" + (f" ({more} more: --all)" if more else "")
    head = f"{'thread':>9} {'name':<16} {'cached':>10} {'outbox':>10}  classes"
    rows = [
        f"{one.number:>9} {one.name[:16]:<16} {size(one.cached_bytes):>10} {size(one.outbox_bytes):>10}  "
        + ("idle: taken back" if one.revoked else str(len(one.cached)))
        for one in shown
    ]
    return ["", title, head, *rows]


def render(picture: Picture, everything: bool = False) -> str:
    """The whole page, without a newline at its end."""
    head = f"{picture.program} {picture.pid}: line {picture.line} {picture.release}, resident {size(picture.resident)}"
    return "\n".join([head, *_summary(picture), *_classes(picture, everything), *_threads(picture, everything)])


def _age(seconds: float) -> str:
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}s ago"
    return f"{seconds:.1f} s ago"


def render_file(one: StatsFile) -> str:
    """What the process has written itself: sums, and no more."""
    stats = one.stats
    rows = [
        ("live", stats["bytes_live"], "the program's blocks"),
        ("cached", stats.get("bytes_cached", 0), "free slots that threads cache, or pass on"),
        ("dirty", stats.get("bytes_dirty", 0), "free, still backed by memory"),
        ("metadata", stats.get("bytes_metadata", 0), "the heap's own"),
        ("peak", stats.get("bytes_peak", 0), "highest live and cached so far"),
    ]
    head = f"{one.program} {one.pid}: line {one.line} {one.release}"
    written = f"written by the process {_age(one.age)}: {one.file}"
    last = f"{_many(stats.get('threads', 0), 'thread')}; {_purges(stats)}"
    return "\n".join([head, written, *_rows(rows), last])
