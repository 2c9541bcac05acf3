# SPDX-License-Identifier: Apache-2.0
"""What a heap holds, seen from outside: totals, size classes, threads.

`take` reads a process whose threads run on meanwhile. What changes hands just then, as when the purger takes back what
idle threads cache, would be counted twice or not at all: so the books are read again until they stood still, a few
times. Sums of a busy process are off by what moved in the milliseconds of the last look; of one at rest they are those
of hz_stats. A process may say anything of its heap: what cannot be true is an `UnseenError`. Costs the reader time
proportional to the spans that the heap ever had (some 20 MiB/s of descriptors), and the process nothing.
"""

from __future__ import annotations

import contextlib
import struct
import time
from array import array
from dataclasses import dataclass, field

from hakozuna_observe.layout import Layout, Word
from hakozuna_observe.process import Process, UnreadableError, UnseenError, within_patience

_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SIGNED = frozenset({"thread.room", "thread.capacity", "thread.out", "thread.waiting", "thread.spans"})
_NO_LIMIT = 2**64 - 1
_MOST_THREADS = 100_000  # of a list that is read while it changes
_LOOKS, _MOST_SECONDS = 5, 2.0  # and time that they may take before another one is begun
_ROWS = 1 << 16  # descriptors of spans that are read at once
_PAGE = 4096  # of memory, or a part of one
_PAGES = 16  # of a granule: `span.absent` has a bit for each
TENTHS = 10  # how full a span is
PURGER = ("none", "at work", "asleep")


@dataclass
class SizeClass:
    """Slots of one size. `fill[i]` spans have from i to i + 1 tenths of their slots out, the last also all."""

    size: int
    spans: int = 0
    span_bytes: int = 0
    untouched: int = 0  # bytes of them that never had memory, or gave it back
    free_pages: int = 0  # bytes of pages that have memory, and into which no slot reaches that is out
    slots: int = 0  # that fit into the spans
    out: int = 0  # slots: live, cached by threads, or waiting between them
    cached: int = 0  # of these, by threads
    fill: list[int] = field(default_factory=lambda: [0] * TENTHS)

    @property
    def out_bytes(self) -> int:
        """Of slots out of their spans."""
        return self.out * self.size

    @property
    def cached_bytes(self) -> int:
        """Of slots that threads cache."""
        return self.cached * self.size

    @property
    def held_open(self) -> int:
        """Bytes with memory, in spans in use, in which no slot is that is out."""
        return max(self.span_bytes - self.untouched - self.out_bytes, 0)


@dataclass
class Thread:
    """A thread that used the heap, and what it caches."""

    number: int
    name: str
    cached: dict[int, int] = field(default_factory=dict)  # slots, by class
    cached_bytes: int = 0
    outbox_bytes: int = 0
    revoked: bool = False  # idle: what it cached was taken back


@dataclass
class Picture:
    """One look at one heap. Bytes, unless said otherwise; `stats` has the names of hz_stats."""

    pid: int
    program: str
    line: str
    release: str
    at: float  # seconds since the epoch
    stats: dict[str, int]
    classes: list[SizeClass]
    threads: list[Thread]
    purger: str
    retained: dict[str, int]  # what retention goes by
    huge_blocks: int
    huge_bytes: int
    sampled_blocks: int
    sampled_bytes: int  # live blocks that the heap profile chose as samples; they lie in no span
    limit_soft: int | None
    limit_hard: int | None
    resident: int

    @property
    def held_open(self) -> int:
        """Bytes free in spans that some slot keeps in use."""
        return sum(one.held_open for one in self.classes)

    @property
    def trimmable(self) -> int:
        """Bytes that a trim would return to the system at least; more where cached slots keep pages."""
        return self.stats["bytes_dirty"] + sum(one.free_pages for one in self.classes)


class _Reader:
    """Words of one layout."""

    def __init__(self, process: Process, layout: Layout) -> None:
        self.process, self.layout = process, layout

    def word(self, name: str) -> Word | None:
        return self.layout.words.get(name)

    def many(self, name: str, pattern: tuple[int, bytes] | None = None) -> list[int]:
        """All values of a word; of a pattern, from the text of one of its kind. Empty if there is none."""
        word = self.word(name)
        if word is None or word.bytes not in _FORMATS:
            return []
        form = _FORMATS[word.bytes]
        form = f"<{word.count}{form.lower() if name in _SIGNED else form}"
        if not word.is_pattern:
            return list(struct.unpack(form, self.process.read(word.at, word.count * word.bytes)))
        if pattern is None:
            return []
        return list(struct.unpack_from(form, pattern[1], word.at))

    def one(self, name: str, pattern: tuple[int, bytes] | None = None) -> int:
        """The value; 0 if there is none."""
        values = self.many(name, pattern)
        return values[0] if values else 0

    def state(self, at: int) -> tuple[int, bytes]:
        """Of a thread."""
        return at, self.process.read(at, self.layout.number("thread.bytes"))


def take(process: Process, layout: Layout) -> Picture:
    """Reads what the heap holds now; `UnseenError` if the process ended meanwhile, or what it says cannot be true."""
    try:
        return _take(process, layout)
    except (ArithmeticError, LookupError, MemoryError, ValueError, struct.error):
        # It has sizes of zero, numbers that are none of its classes, offsets behind what they are offsets in.
        raise process.damaged() from None


def _take(process: Process, layout: Layout) -> Picture:
    reader = _Reader(process, layout)
    boxes = "thread.bytes" in layout
    classes = _classes_of_boxes(reader) if boxes else _classes_of_regions(reader)
    threads, sums, retain = _settled(reader, classes) if boxes else ([], {}, _retention(reader))
    unit = layout.number("dirty.unit", layout.number("granule.bytes"))
    out = retain.get("retain.out", 0) + sums.get("thread.out", 0)
    samples, sampled = reader.one("profile.samples"), reader.one("profile.sample_bytes")
    events = _events(reader, sums)
    outbox = sum(one.outbox_bytes for one in threads)
    between = _difference(events, "bytes_sent", "bytes_collected")
    waiting = retain.get("retain.waiting", 0) + sums.get("thread.waiting", 0) + between + sums.get("nobodys_outbox", 0)
    cached = sums.get("cached_bytes", 0) + outbox
    counting = 1 if not boxes else reader.one("process.counting")
    live = max(out - cached - waiting, 0)
    if boxes and counting:
        live = _difference(events, "bytes_allocated", "bytes_freed")
    stats = {name: value for name, value in events.items() if name in _SHOWN}
    stats |= {
        "counting": counting,
        "remote_waiting": _difference(events, "remote_sent", "remote_collected"),
        "bytes_held": out,
        "bytes_live": live,
        "bytes_cached": cached + waiting,
        "bytes_dirty": reader.one("source.dirty") * unit,
        "bytes_metadata": _metadata(reader),
        "bytes_peak": max(reader.one("retain.peak"), out),
        "threads": len(threads),
        "classes_dealt": sum(reader.many("class.dealt")),
        "policy_tight": reader.one("policy.tight"),
        "policy_turns": reader.one("policy.turns"),
        "preset_moves": reader.one("policy.moves"),
    }
    return Picture(
        pid=process.pid,
        program=process.name(),
        line=layout.line,
        release=layout.release,
        at=time.time(),
        stats=stats,
        classes=[one for one in classes if one.spans or one.cached],
        threads=sorted(threads, key=lambda one: -one.cached_bytes),
        purger=PURGER[min(reader.one("process.purger"), 2)],
        retained={
            "waiting": waiting,
            "recent": max(reader.one("retain.high"), reader.one("retain.before"), live),
            "percent": reader.one("retain.percent"),
            "spans": reader.one("retain.spans") + sums.get("thread.spans", 0),
        },
        huge_blocks=max(reader.one("huge.blocks") - samples, 0),
        huge_bytes=max(reader.one("huge.bytes") - sampled, 0),
        sampled_blocks=samples,
        sampled_bytes=sampled,
        limit_soft=_limit(reader, "limit.soft"),
        limit_hard=_limit(reader, "limit.hard"),
        resident=process.number("status", "VmRSS"),
    )


_SHOWN = frozenset(
    (
        "alloc_small",
        "alloc_medium",
        "alloc_large",
        "free_small",
        "free_medium",
        "free_large",
        "refills",
        "flushes",
        "remote_sent",
        "remote_collected",
        "remote_refused",
        "spans_acquired",
        "spans_retired",
        "purges",
        "bytes_purged",
        "revocations",
    )
)


def _limit(reader: _Reader, name: str) -> int | None:
    value = reader.one(name)
    return None if value in (0, _NO_LIMIT) else value


def _events(reader: _Reader, sums: dict[str, int]) -> dict[str, int]:
    names = [name for name in reader.layout.words if name.startswith("event.")]
    return {name.removeprefix("event."): sums[name] if name in sums else reader.one(name) for name in names}


def _difference(events: dict[str, int], more: str, less: str) -> int:
    """Returns 0 where it would be less, as hz_stats does: threads are read one after the other, and go on meanwhile."""
    return max(events.get(more, 0) - events.get(less, 0), 0)


def _metadata(reader: _Reader) -> int:
    number = reader.layout.number
    own = number("metadata.bytes") + reader.one("process.thread_memory")
    own += reader.one("source.reached") * number("metadata.per_granule")
    store = reader.word("magazine.store")
    if store is not None:
        text = reader.process.read(store.at, store.count * store.bytes)
        own += sum(
            struct.unpack_from("<Q", text, i * store.bytes + number("magazine.held"))[0] for i in range(store.count)
        )
    own += reader.one("profile.bytes")
    return own + reader.one("region.count") * number("region.notes") + _notes_of_huge(reader)


def _notes_of_huge(reader: _Reader) -> int:
    return reader.one("huge.blocks") * reader.layout.number("huge.notes")


# --- lines of boxes


def _classes_of_boxes(reader: _Reader) -> list[SizeClass]:
    granule = reader.layout.number("granule.bytes")
    sizes = reader.many("class.size")
    classes = [SizeClass(size) for size in sizes]
    base = reader.one("pool.spans")
    stretches = reader.word("source.stretch")
    if base == 0 or stretches is None:
        return classes
    rows = reader.process.read(stretches.at, stretches.count * stretches.bytes)
    for i in range(min(reader.one("source.stretches"), stretches.count)):
        begin, top = struct.unpack_from("<II", rows, i * stretches.bytes)
        if begin < top:
            _count_spans(reader, base, begin, top, classes, granule)
    return classes


def _count_spans(reader: _Reader, base: int, begin: int, top: int, classes: list[SizeClass], granule: int) -> None:
    width = reader.layout.number("span.bytes")
    words = [reader.word(f"span.{name}") for name in ("place", "carved", "free", "absent")]
    places = [word.at // 2 for word in words if word is not None]
    if len(places) != len(words):
        return
    bits = _Bits(reader, classes, granule)
    while begin < top:
        count = min(top - begin, _ROWS)
        try:
            text = array("H", reader.process.read(base + begin * width, count * width))
        except UnreadableError:  # the rows of a new span may not be there yet, and those of an old one no longer
            return
        _count_rows([text[place :: width // 2] for place in places], classes, granule, bits, begin)
        begin += count


def _count_rows(columns: list[array[int]], classes: list[SizeClass], granule: int, bits: _Bits, begin: int) -> None:
    for row, (place, carved, free, absent) in enumerate(zip(*columns, strict=True), begin):
        number = place & 0xFF
        if number == 0 or number >= len(classes):
            continue
        one = classes[number]
        slots = granule // one.size if one.size <= granule else 1
        span_bytes = -(-one.size * slots // granule) * granule
        _add_span(one, slots, max(carved - free, 0), span_bytes, bin(absent).count("1") * bits.page)
        if free != 0:
            one.free_pages += bits.free_pages(row, number, carved, absent)


class _Bits:
    """The bits of free slots in their spans, and the pages that they leave free."""

    def __init__(self, reader: _Reader, classes: list[SizeClass], granule: int) -> None:
        number = reader.layout.number
        self._process, self._classes, self._granule = reader.process, classes, granule
        self.page = number("span.page")
        self._pages_go = bool(number("span.pages_go")) and granule == _PAGES * self.page
        self._tables = {
            name: (reader.one(f"bits.{name}"), number(f"bits.{name}_bytes")) for name in ("sparse", "wide", "dense")
        }
        self._last_wide, self._last_dense = number("bits.last_wide"), number("bits.last_dense")
        self._masks: dict[int, list[int]] = {}  # of the slots that reach into each page, by class
        self._read: dict[str, tuple[int, bytes]] = {}  # the page of each table that was read last, and where it lies

    def free_pages(self, row: int, number: int, carved: int, absent: int) -> int:
        """Bytes of the pages of a span that a trim returns; 0 where the line keeps them."""
        name = "sparse" if number > self._last_wide else "wide" if number > self._last_dense else "dense"
        if not self._pages_go or not self._tables[name][0] or self._classes[number].size >= self._granule:
            return 0
        home = self._row(name, row) | -1 << carved
        if number not in self._masks:
            self._masks[number] = self._masks_of(self._classes[number].size)
        masks = self._masks[number]
        return self.page * sum(home & mask == mask for page, mask in enumerate(masks) if not absent >> page & 1)

    def _row(self, name: str, row: int) -> int:
        """Rows of a table do not cross pages; a page that cannot be read has no bits."""
        begin, width = self._tables[name]
        at = begin + row * width
        page = at - at % _PAGE
        if self._read.get(name, (0, b""))[0] != page:
            text = b""
            with contextlib.suppress(UnreadableError):
                text = self._process.read(page, _PAGE)
            self._read[name] = page, text
        return int.from_bytes(self._read[name][1][at - page : at - page + width], "little")

    def _masks_of(self, size: int) -> list[int]:
        slots = self._granule // size
        masks = []
        for begin in range(0, self._granule, self.page):
            first, end = min(begin // size, slots), min((begin + self.page - 1) // size + 1, slots)
            masks.append((1 << end) - (1 << first))
        return masks


def _add_span(one: SizeClass, slots: int, out: int, span_bytes: int, untouched: int) -> None:
    one.spans += 1
    one.untouched += untouched
    one.slots += slots
    one.span_bytes += span_bytes
    one.out += out
    one.fill[min(out * TENTHS // slots, TENTHS - 1)] += 1


def _settled(reader: _Reader, classes: list[SizeClass]) -> tuple[list[Thread], dict[str, int], dict[str, int]]:
    """Threads and sums as below, and retention's words, of a moment in which nothing moved between them; of the last
    look where something always does."""
    until = time.monotonic() + _MOST_SECONDS
    for _ in range(_LOOKS):
        before = _books(reader)
        for one in classes:
            one.cached = 0
        threads, sums = _threads(reader, classes)
        if _books(reader) == before or time.monotonic() > until:
            break
    return threads, sums, before[0]


def _books(reader: _Reader) -> tuple[dict[str, int], list[tuple[int, bytes]]]:
    """What says how many slots are where."""
    return _retention(reader), [*_list(reader, reader.one("process.threads")), *_nobodys(reader)]


def _retention(reader: _Reader) -> dict[str, int]:
    return {name: reader.one(name) for name in reader.layout.words if name.startswith("retain.")}


def _threads(reader: _Reader, classes: list[SizeClass]) -> tuple[list[Thread], dict[str, int]]:
    """Those alive; and the sums over all states, also those that are no living thread's."""
    sums: dict[str, int] = {"cached_bytes": 0}
    threads = []
    alive = _list(reader, reader.one("process.threads"))
    numbers = _numbers(reader.process, [reader.one("thread.local", state) for state in alive])
    for state in alive:
        thread = Thread(numbers.get(reader.one("thread.local", state), 0), "")
        thread.name = reader.process.thread_name(thread.number)
        thread.revoked = reader.one("thread.revoked", state) != 0
        thread.outbox_bytes = reader.one("thread.outbox", state)
        thread.cached = {} if thread.revoked else _cached(reader, state)
        thread.cached_bytes = _count_cached(thread.cached, classes)
        sums["cached_bytes"] += thread.cached_bytes
        _add(reader, state, sums)
        threads.append(thread)
    for state in _nobodys(reader):
        sums["cached_bytes"] += _count_cached(_cached(reader, state), classes)
        sums["nobodys_outbox"] = sums.get("nobodys_outbox", 0) + reader.one("thread.outbox", state)
        _add(reader, state, sums)
    return threads, sums


# How far from a variable of ours in a thread's static storage the C library may keep the thread's number.
_BEFORE, _AFTER, _FEW = 8 << 10, 64 << 10, 8


def _numbers(process: Process, variables: list[int]) -> dict[int, int]:
    """The system's numbers of the threads whose variables of ours lie at these addresses. The heap does not ask for
    them, since that would be one more system call in each thread; but the C library keeps them, as far from our
    variables in every thread as in any other (initial-exec storage). So: the distance at which they have
    numbers of threads, all different. Whoever is not found, as with a C library that has them elsewhere, has none."""
    numbers = set(process.thread_numbers())
    distances: dict[int, dict[int, int]] = {}
    # Those of a few tell which distances there may be.
    for variable in variables[:_FEW]:
        first, text = process.read_around(variable & -4, _BEFORE, _AFTER)
        for i, number in enumerate(array("I", text)):
            if number in numbers:
                distances.setdefault(first + 4 * i - variable, {})[variable] = number
    likely = sorted(distances.values(), key=lambda found: -len(set(found.values())))
    for distance in [each for each, found in distances.items() if any(found is one for one in likely[:_FEW])]:
        for variable in variables[_FEW:]:
            with contextlib.suppress(UnreadableError):  # the thread has just ended
                (number,) = struct.unpack("<I", process.read(variable + distance, 4))
                if number in numbers:
                    distances[distance][variable] = number
    # A thread may have ended meanwhile: the distance that tells the most apart.
    return max(distances.values(), key=lambda found: len(set(found.values())), default={})


def _list(reader: _Reader, at: int) -> list[tuple[int, bytes]]:
    """States in a list that may change meanwhile: what was read is what there was at some time."""
    states: list[tuple[int, bytes]] = []
    seen = set()
    while at != 0 and at not in seen and len(states) < _MOST_THREADS:
        seen.add(at)
        try:
            state = reader.state(at)
        except UnreadableError:  # it has just ended
            break
        states.append(state)
        at = reader.one("thread.next", state)
    return states


def _nobodys(reader: _Reader) -> list[tuple[int, bytes]]:
    states = _list(reader, reader.one("process.orphans"))
    for name in ("process.shared", "process.purger_state"):
        word = reader.word(name)
        if word is not None:
            states.append(reader.state(word.at))
    return states


def _add(reader: _Reader, state: tuple[int, bytes], sums: dict[str, int]) -> None:
    for name in reader.layout.words:
        if name.startswith("event.") or name in ("thread.out", "thread.waiting", "thread.spans"):
            sums[name] = sums.get(name, 0) + reader.one(name, state)


def _cached(reader: _Reader, state: tuple[int, bytes]) -> dict[int, int]:
    """Slots by class. While a heap profile is kept, a thread has bins like its own that its malloc takes from."""
    cached = _in_front(reader, state)
    quota = reader.one("thread.quota", state)
    if quota:
        for number, count in _in_front(reader, reader.state(quota)).items():
            cached[number] = cached.get(number, 0) + count
    return cached


def _in_front(reader: _Reader, state: tuple[int, bytes]) -> dict[int, int]:
    """Slots by class: what the bin at hand may hold, less the room that is left there; the spare magazine; and what
    waits in rings before it may be used again."""
    capacities, rooms = reader.many("thread.capacity", state), reader.many("thread.room", state)
    magazines, spares = reader.many("thread.magazine", state), reader.many("thread.spare", state)
    slots, few = reader.layout.number("magazine.slots"), reader.layout.number("magazine.short")
    waiting = _in_rings(reader, state)
    cached = {}
    for number in range(1, min(len(capacities), len(rooms))):
        limit = capacities[number]
        if magazines:
            limit = min(limit, slots if magazines[number] else few)
        # A list of slots may bring more than there was room for, also to a bin that has none.
        count = max(limit - rooms[number], 0) if limit > 0 or not magazines else 0
        count += spares[number] if spares else 0
        count += waiting.get(number, 0)
        if count:
            cached[number] = count
    return cached


def _in_rings(reader: _Reader, state: tuple[int, bytes]) -> dict[int, int]:
    """Slots by class. The rings lie in a row; while they are taken from an idle thread they do not."""
    rings, width = reader.many("thread.ring", state)[1:], reader.layout.number("ring.places") * 8
    if not rings or rings[0] == 0 or rings != [rings[0] + i * width for i in range(len(rings))]:
        return {}
    try:
        places = array("Q", reader.process.read(rings[0], len(rings) * width))
    except UnreadableError:  # the thread has just ended
        return {}
    each = width // 8
    return {i + 1: each - places[i * each : (i + 1) * each].count(0) for i in range(len(rings))}


def _count_cached(cached: dict[int, int], classes: list[SizeClass]) -> int:
    total = 0
    for number, count in cached.items():
        classes[number].cached += count
        total += count * classes[number].size
    return total


# --- hz7: regions of 4 MiB, found through a table of two levels


def _classes_of_regions(reader: _Reader) -> list[SizeClass]:
    classes: dict[int, SizeClass] = {}
    number = reader.layout.number
    leaves = reader.many("table.leaves")
    for i, leaf in enumerate(leaves):
        if leaf == 0:
            continue
        kinds = reader.process.read(leaf, number("table.leaf"))
        for k, kind in enumerate(kinds):
            if kind == number("table.spans"):
                _count_region(reader, (i * number("table.leaf") + k) * number("region.bytes"), classes)
    return [classes[size] for size in sorted(classes)]


def _count_region(reader: _Reader, at: int, classes: dict[int, SizeClass]) -> None:
    spans = reader.word("region.span")
    used_word = reader.word("region.used")
    if spans is None or used_word is None:
        return
    granule = reader.layout.number("granule.bytes")
    try:
        text = reader.process.read(at, spans.at + spans.count * spans.bytes)
    except UnreadableError:
        return
    used = struct.unpack_from("<Q", text, used_word.at)[0]
    row = 1
    while row < spans.count:
        own = (at, text[spans.at + row * spans.bytes :])
        size, slots, out, carved, zeroed = (
            reader.one(f"span.{name}", own) for name in ("slot_bytes", "slots", "used", "carved", "zeroed")
        )
        if not used >> row & 1 or size == 0 or slots == 0:
            row += 1
            continue
        granules = -(-size * slots // granule)
        one = classes.setdefault(size, SizeClass(size))
        _add_span(one, slots, out, granules * granule, (slots - carved) * size if zeroed else 0)
        row += granules


def look(pid: int) -> list[Picture]:
    """A picture of each heap of ours in the process; `UnseenError` says why there is none."""
    from hakozuna_observe import layout as description

    process = Process(pid)
    pictures = within_patience(process, lambda: [take(process, one) for one in description.find(process)])
    if not process.is_the_same():
        raise UnseenError(f"process {pid} has ended")
    return pictures
