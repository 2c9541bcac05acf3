# SPDX-License-Identifier: Apache-2.0
"""Commands for gdb that say what a heap of ours holds: `source hakozuna-gdb.py`, then `help hz`. For whoever debugs a
program that we serve, running or as a core file (doc/observe.md). It reads memory by the debugging information of the
library, calls nothing in the process and writes nothing to it. A fraction of a second for an answer; `hz heap` looks
at each span, which takes a second for some gigabytes.

The names of fields are those of src/: State (src/heap/state/state.hpp), the boxes (src/box), and the heap of one lock
(src/heap/one_lock)."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import gdb

# The lines and their structs, as in CMakeLists.txt.
LINES = {
    "hakozuna": "Hakozuna",
    "hz3": "Hz3",
    "hz3-fast": "Hz3Fast",
    "hz4": "Hz4",
    "hz5": "Hz5",
    "hz6": "Hz6",
    "hz7": "Hz7",
    "hz8": "Hz8",
    "secure": "Secure",
}

# What `hz heap` says first, by the names of the statistics (hz_stats_t), as a program at rest would say it itself.
FIGURES = {
    "bytes_held": "out of their spans, and in huge blocks",
    "bytes_live": "of these the program's",
    "bytes_cached": "of these free: cached by threads, on their way, and waiting",
    "bytes_waiting": "of these waiting in the exchange",
    "bytes_dirty": "free memory that has pages",
    "bytes_purged": "given back to the system so far",
    "bytes_peak": "the most that was ever held",
    "bytes_metadata": "the heap's own",
    "threads": "that have a state of their own",
}

# What a free is reported as (doc/design.md, "Failure").
E01, E02 = "E01 foreign-pointer", "E02 not-allocated"
E03, E04 = "E03 double-free", "E04 interior-pointer"
AT_ONCE = ", at the free itself"
LATER = ", when its slots return to their spans, at the latest when the program exits"

# What guards write down about a slot: SlotState::State and Phase, in their order.
SLOT_STATES = ("never handed out", "live", "freed by another thread", "free")
PHASES = (
    "never handed out",
    "free in its span",
    "free, a thread's",
    "live",
    "freed by another thread",
    "free, in the exchange",
    "free, its owner gone",
)
LIVE = "live"

# Constants of src/base, of which the debugging information has no trace, and of others that are private.
GRANULE_SHIFT, GRANULE = 16, 1 << 16
PAGE_SHIFT, PAGE = 12, 1 << 12
UNIT_SHIFT = 4  # of the bits of a chunk
MEDIUM_MAX = 64 << 10  # classes above have one slot a span
SLOT_BYTES = (("dense", 128, 4), ("wide", 2048, 7), ("sparse", 1 << 32, 11))  # table, slots below, shift
SLOT_BITS = (("dense", 128, 64), ("wide", 1024, 8), ("sparse", 1 << 32, 1))  # table, slots below, words a granule
SHORT_SLOTS = 16  # of a bin without a magazine
SEAL_SHIFT = 58  # in an outbox of hz6 a pointer carries a generation from there on
REGION_SHIFT, REGION = 22, 1 << 22  # hz7's
LEAF_BITS, ADDRESS_BITS = 13, 48
TOUCHED_NOTES = 3 * PAGE
LONGEST_LIST = 1 << 24  # a list that is longer is taken for a circle
SHOWN_THREADS = 20


class NoAnswerError(Exception):
    """What the user is told in place of an answer, in one line."""


# --- memory


def memory(address: int, size: int) -> memoryview:
    try:
        return memoryview(bytes(gdb.selected_inferior().read_memory(address, size))) if size else memoryview(b"")
    except (gdb.MemoryError, OverflowError):
        raise NoAnswerError(
            f"the {size} bytes at {address:#x} cannot be read: the heap is damaged, or they are not in this core"
        ) from None


def numbers(address: int, count: int) -> list[int]:
    """Words of 8 bytes."""
    return list(memory(address, 8 * count).cast("Q"))


def plain(type_: gdb.Type) -> gdb.Type:
    return type_.strip_typedefs().unqualified()


class Layouts:
    """Where the fields of types lie, also those of their bases. For one command: a program that is loaded anew may have
    others."""

    known: dict[str, dict[str, tuple[int, gdb.Type]]] = {}  # noqa: RUF012

    @classmethod
    def of(cls, type_: gdb.Type) -> dict[str, tuple[int, gdb.Type]]:
        name = type_.name or str(type_)
        if name not in cls.known:
            cls.known[name] = dict(cls.fields(type_, 0))
        return cls.known[name]

    @classmethod
    def fields(cls, type_: gdb.Type, base: int) -> Iterator[tuple[str, tuple[int, gdb.Type]]]:
        for one in type_.fields():
            place = getattr(one, "bitpos", None)
            if place is None or one.type is None:  # static
                continue
            offset = base + place // 8
            if one.is_base_class:
                yield from cls.fields(plain(one.type), offset)
            elif one.name:
                yield one.name, (offset, plain(one.type))


class View:
    """A value of the process, read as a whole when something of it is asked for: members by name, elements by number.
    As an int it is its bytes, so that an atomic word is as good as a plain one."""

    def __init__(self, type_: gdb.Type, address: int, data: memoryview | None = None) -> None:
        self.type, self.address, self.known = type_, address, data

    @property
    def data(self) -> memoryview:
        if self.known is None:
            self.known = memory(self.address, self.type.sizeof)
        return self.known

    @property
    def name(self) -> str:
        return self.type.name or str(self.type)

    def __contains__(self, key: str) -> bool:
        return key in Layouts.of(self.type)

    def __getitem__(self, key: str | int) -> "View":
        if isinstance(key, str):
            if key not in self:
                raise NoAnswerError(f"{self.name} has no {key}: this script is for another version of the library")
            offset, type_ = Layouts.of(self.type)[key]
        else:
            type_ = plain(self.type.target())
            offset = key * type_.sizeof
            if not 0 <= key < len(self):
                raise NoAnswerError(f"number {key} of {len(self)} at {self.address:#x}: the heap is damaged")
        return View(type_, self.address + offset, self.data[offset : offset + type_.sizeof])

    def __len__(self) -> int:
        low, high = self.type.range()
        return int(high) - int(low) + 1

    def __iter__(self) -> Iterator["View"]:
        return (self[i] for i in range(len(self)))

    def __int__(self) -> int:
        return int.from_bytes(self.data, "little")

    def __index__(self) -> int:
        return int(self)

    def __bool__(self) -> bool:
        return int(self) != 0

    def signed(self) -> int:
        return int.from_bytes(self.data, "little", signed=True)

    def pointed_type(self) -> gdb.Type:
        """Of a pointer, also in an atomic or a word of its own."""
        type_ = self.type
        if type_.code == gdb.TYPE_CODE_STRUCT:
            argument = type_.template_argument(0)
            assert isinstance(argument, gdb.Type)
            type_ = plain(argument)
        return plain(type_.target())

    def pointee(self) -> "View":
        return View(self.pointed_type(), int(self))


def symbol(name: str) -> View | None:
    found = gdb.lookup_global_symbol(name)
    if found is None or found.type is None:
        return None
    address = found.value().address
    return View(plain(found.type), variable_address(found) if address is None else int(address))


def variable_address(found: gdb.Symbol) -> int:
    """Of what clang 14 calls a constant: a variable of a built-in type that is zero at first. The linker's symbol has
    its address."""
    listed = gdb.execute(f"maint print msymbols -objfile {found.symtab.objfile.filename}", to_string=True)
    match = re.search(rf" 0x([0-9a-f]+) \S+ section \S+ +{re.escape(found.name)}\s", listed)
    if match is None:
        raise NoAnswerError(f"the debugging information has no address of {found.name}")
    return int(match[1], 16)


def needed(name: str) -> View:
    found = symbol(name)
    if found is None:
        raise NoAnswerError(
            f"the debugging information has no {name}: this script is for another version of the library"
        )
    return found


def enumerators(name: str) -> dict[str, int]:
    try:
        members = gdb.lookup_type(name).fields()
    except gdb.error:
        raise NoAnswerError(f"the debugging information has no {name}") from None
    return {(one.name or "").split("::")[-1]: int(one.enumval) for one in members}


def walk(first: View, following: str) -> Iterator[View]:
    """A list from a pointer to its first member on."""
    type_ = first.pointed_type()
    at, seen = int(first), set[int]()
    while at != 0:
        if at in seen or len(seen) > LONGEST_LIST:
            raise NoAnswerError(f"the list from {first.address:#x} on is a circle: the heap is damaged")
        seen.add(at)
        member = View(type_, at)
        yield member
        at = int(member[following])


class Table:
    """Rows beside the arena, read some thousand at once: those of stretches, from a row up to another, can be read."""

    CHUNK = 4096

    def __init__(self, rows: View, stretches: list[tuple[int, int]]) -> None:
        self.type, self.address, self.stretches = rows.pointed_type(), int(rows), stretches
        self.chunks: dict[int, memoryview] = {}

    def __getitem__(self, row: int) -> View:
        size = self.type.sizeof
        begin, top = next((one for one in self.stretches if one[0] <= row < one[1]), (row, row + 1))
        first = begin + (row - begin) // self.CHUNK * self.CHUNK
        if first not in self.chunks:
            self.chunks[first] = memory(self.address + first * size, (min(first + self.CHUNK, top) - first) * size)
        offset = (row - first) * size
        return View(self.type, self.address + row * size, self.chunks[first][offset : offset + size])


# --- threads


@dataclass
class Owner:
    """A thread as gdb knows it, if it does, and its state in the heap."""

    state: View
    title: str  # as in a sentence
    alive: bool

    @property
    def owner(self) -> int:
        return int(self.state["owner"])


def thread_pointers() -> list[tuple[gdb.InferiorThread, int]]:
    """Where each thread's own storage is, by the register that says so; none where gdb has none."""
    found = []
    selected = gdb.selected_thread()
    frame = gdb.selected_frame() if selected is not None else None
    try:
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            for register in ("fs_base", "tpidr"):
                try:
                    found.append((thread, int(gdb.newest_frame().read_register(register)) & (1 << 64) - 1))
                    break
                except (ValueError, gdb.error):
                    continue
    finally:
        if selected is not None and frame is not None:
            selected.switch()
            frame.select()
    return found


def named_threads(states: list[View]) -> dict[int, gdb.InferiorThread]:
    """Whose states these are, by their addresses. In all threads what is thread-local lies equally far from the thread
    pointer, so the distance that is right is the one that most states have."""
    pointers = thread_pointers()
    locals_ = {state.address: int(state["local"]) for state in states if state["local"]}
    distances = Counter(local - pointer for local in locals_.values() for _, pointer in pointers)
    if not distances:
        return {}
    distance = min(distances, key=lambda one: (-distances[one], abs(one)))
    at = {pointer + distance: thread for thread, pointer in pointers}
    return {address: at[local] for address, local in locals_.items() if local in at}


def title_of(thread: gdb.InferiorThread | None) -> str:
    if thread is None:
        return "a thread that gdb does not know"
    lwp = thread.ptid[1]
    return f"thread {thread.num} (LWP {lwp})" if lwp else f"thread {thread.num}"


# --- free slots: where a thread caches them


class MagazineBins:
    """src/box/front/magazine_bins.hpp"""

    def __init__(self, front: View) -> None:
        self.front = front
        self.magazine = front["spare"][0].pointed_type()
        self.slots_at, slots = Layouts.of(self.magazine)["slots"]
        self.most = slots.sizeof // 8
        self.scratch = front["scratch"].address

    def base(self, number: int) -> int:
        if self.front["loaded"][number]:
            return int(self.front["loaded"][number]) + self.slots_at
        first = int(self.front["short_array"][number])
        return int(self.front["entries"]) + 8 * first if first else 0

    def at_hand(self, number: int) -> tuple[int, int, bool]:
        """Where they begin, how many, and whether one more lies in `scratch`."""
        top, base = int(self.front["tops"][number]), self.base(number)
        put_there = top == self.scratch + 16
        if put_there or top == self.scratch + 8:
            resolved = int(self.front["unresolved_bin"]) != number
            top = base if resolved else int(self.front["unresolved"])
        count = (top - base) // 8 if base else 0
        return base, count if 0 <= count <= self.most else 0, put_there

    def count(self, number: int) -> int:
        _, count, put_there = self.at_hand(number)
        return count + put_there + int(self.front["spare_count"][number])

    def slots(self, number: int) -> list[int]:
        """The one that came last is the last."""
        base, count, put_there = self.at_hand(number)
        spare = int(self.front["spare_count"][number])
        if spare > self.most:
            raise NoAnswerError(f"a magazine of {self.most} slots holds {spare}: the heap is damaged")
        found = numbers(int(self.front["spare"][number]) + self.slots_at, spare) if spare else []
        found += numbers(base, count) if count else []
        return found + ([int(self.front["scratch"][1])] if put_there else [])

    def amid(self) -> list[int]:
        """Of which classes the thread stands inside of an operation: its count has moved, and not yet its top."""
        if not self.front["entries"] or self.front["detached"]:
            return []
        return [number for number in range(1, len(self.front["tops"]) - 1) if self.is_amid(number)]

    def is_amid(self, number: int) -> bool:
        base, most = self.base(number), self.most if self.front["loaded"][number] else SHORT_SLOTS
        limit = min(self.front["capacity"][number].signed(), most)
        room = limit - self.front["room"][number].signed()
        return base != 0 and (int(self.front["tops"][number]) - base) // 8 != room


class LinkedBins:
    """src/box/front/linked_bins.hpp"""

    def __init__(self, front: View) -> None:
        self.front = front

    def count(self, number: int) -> int:
        if self.front["detached"] and int(self.front["unresolved_bin"]) != number:
            return int(bool(self.front["heads"][number]))
        return max(0, self.front["capacity"][number].signed() - self.front["room"][number].signed())

    def slots(self, number: int) -> list[int]:
        found = [slot.address for slot in walk(self.front["heads"][number], "next")]
        if int(self.front["unresolved_bin"]) == number:
            found += [slot.address for slot in walk(self.front["unresolved"], "next")]
        return found[::-1]

    def amid(self) -> list[int]:
        if self.front["detached"]:
            return []
        heads = self.front["heads"]
        some = [number for number in range(1, len(heads)) if heads[number]]
        return [number for number in some if self.count(number) != len(self.slots(number))]


def bins_in(front: View) -> MagazineBins | LinkedBins:
    return MagazineBins(front) if "tops" in front else LinkedBins(front)


class Bins:
    """Of a thread: its front, and, while a heap profile is kept, the bins of its malloc (src/heap/api/quotas.hpp)."""

    def __init__(self, state: View) -> None:
        self.fronts = [bins_in(state["quota"].pointee()["front"])] if state["quota"] else []
        self.fronts.append(bins_in(state["front"]))

    def count(self, number: int) -> int:
        return sum(front.count(number) for front in self.fronts)

    def slots(self, number: int) -> list[int]:
        """The one that was freed last is the last."""
        return [slot for front in self.fronts for slot in front.slots(number)]

    def amid(self) -> list[int]:
        return [number for front in self.fronts for number in front.amid()]


# --- free slots on their way: outboxes and the exchange


@dataclass
class Deferred:
    """A slot in a thread's outbox."""

    slot: int
    bin: int
    owner: int


def outbox_of(state: View) -> list[Deferred]:
    """In the order in which they came."""
    box = state["exchange"]
    if "bank" in box:  # dense_bank.hpp
        return [
            Deferred(slot, number, owner)
            for owner, bins in enumerate(box["bank"])
            for number, chain in enumerate(bins)
            if chain["count"]
            for slot in chain_slots(chain)
        ]
    if "places" in box:  # remote_batch.hpp
        count = int(box["count"])
        entries = zip(box["slots"].data.cast("Q")[:count], box["places"].data.cast("I")[:count], strict=False)
        return [Deferred(slot & (1 << SEAL_SHIFT) - 1, place & 0xFF, place >> 8) for slot, place in entries]
    if "entries" in box:  # sparse_ring.hpp
        words = box["entries"].data.cast("Q")[: int(box["count"])]
        return [Deferred(word & (1 << 48) - 1, word >> 48 & 0xFF, word >> 56) for word in words]
    return []


def chain_slots(chain: View) -> list[int]:
    found = []
    for slot in walk(chain["first"], "next"):
        found.append(slot.address)
        if len(found) == int(chain["count"]):
            break
    return found


def outbox_bytes(state: View) -> int:
    return int(state["exchange"]["bytes"]) if "bytes" in state["exchange"] else 0


@dataclass
class Waiting:
    """Slots of one class that lie together in the exchange."""

    bin: int
    slots: list[int]
    where: str


def magazines(first: View) -> Iterator[tuple[View, list[int]]]:
    """Of a list, each with its slots."""
    for magazine in walk(first, "next"):
        count = int(magazine["count"])
        if count > len(magazine["slots"]):
            raise NoAnswerError(
                f"the magazine at {magazine.address:#x} says that it holds {count} slots: it is damaged"
            )
        yield magazine, list(magazine["slots"].data.cast("Q")[:count])


def in_depot(exchange: View) -> Iterator[Waiting]:
    """src/box/exchange/magazine_depot.hpp"""
    shards = exchange["of_cpu"]
    shelf = plain(plain(shards.type.target()).target())
    offset, pointer = Layouts.of(shelf)["first"]
    bins = len(shards[0])
    for place in range(len(shards) * bins):
        begin = place * shelf.sizeof + offset
        data = shards.data[begin : begin + 8]
        if any(data):
            where = f"on the shelf of processor {place // bins}"
            for _, slots in magazines(View(pointer, shards.address + begin, data)):
                yield Waiting(place % bins, slots, where)


def growing_row(table: View, row: int) -> View | None:
    """src/os/growing_table.hpp"""
    first = len(table["first_"])
    if row < first:
        return table["first_"][row]
    chunk = (row // first).bit_length() - 1
    at = table["chunks_"][chunk]
    return View(at.pointed_type(), int(at) + (row - (first << chunk)) * at.pointed_type().sizeof) if at else None


def chunk_bytes(table: View) -> int:
    """Of the same, beyond itself."""
    first, row = len(table["first_"]), plain(table["first_"].type.target()).sizeof
    sizes = [-(-((first << at) * row) // GRANULE) * GRANULE for at in range(len(table["chunks_"]))]
    return sum(size for size, chunk in zip(sizes, table["chunks_"], strict=True) if chunk)


def in_inboxes(exchange: View, owners: int) -> Iterator[Waiting]:
    """src/box/exchange/message_batch.hpp"""
    depot = exchange["of_cpu"][0][0]["first"]
    for owner in range(owners):
        inbox = growing_row(exchange["inboxes"], owner)
        if inbox is None:
            continue
        where = f"in the inbox of owner {owner}"
        head = inbox["fresh"]["head_"]
        # It chains magazines as if they were slots.
        for magazine, slots in magazines(View(depot.type, head.address, head.data)):
            yield Waiting(int(magazine["bin"]), slots, where)
        for number, adopted in enumerate(inbox["adopted"]):
            for _, slots in magazines(adopted):
                yield Waiting(number, slots, where)


def in_owner_lists(exchange: View, owners: int, sizes: list[int]) -> Iterator[Waiting]:
    """src/box/exchange/owner_lists.hpp"""
    for name, words in (("sent", "sent to"), ("kept", "kept for")):
        for owner, shelf in zip(range(owners), exchange[name], strict=False):
            for number, shared in enumerate(shelf["of_bin"]):
                if shared["head_"]:
                    yield Waiting(number, shared_slots(shared["head_"], sizes[number]), f"{words} owner {owner}")


def shared_slots(head: View, size: int) -> list[int]:
    """SharedList of src/base/free_list.hpp: a list of slots, or, where these have room, of lists."""
    batch = plain(gdb.lookup_type("hz::Batch"))
    if size < batch.sizeof:
        return [slot.address for slot in walk(head, "next")]
    found = []
    at = int(head)
    while at != 0:
        first = View(batch, at)
        found += [at, *(slot.address for slot in walk(first["slot"]["next"], "next"))]
        if len(found) > LONGEST_LIST:
            raise NoAnswerError(f"the list from {head.address:#x} on is a circle: the heap is damaged")
        at = int(first["next_batch"])
    return found


# --- tables beside the arena


class Bits:
    """src/base/slot_bits.hpp: a bit for each slot of a granule, in the table of its class."""

    def __init__(self, bits: View) -> None:
        self.tables = [(below, int(bits[name]), words) for name, below, words in SLOT_BITS]

    def row(self, row: int, size: int) -> tuple[int, int]:
        """Where the words of a row begin, for slots of a class of that size, and how many there are."""
        table, words = next((table, words) for below, table, words in self.tables if size < below)
        return table + 8 * row * words, words

    def has(self, row: int, size: int, index: int) -> bool:
        begin, words = self.row(row, size)
        if index // 64 >= words:
            raise NoAnswerError(f"a granule has no slot {index} of {size} bytes")
        return bool(numbers(begin + index // 64 * 8, 1)[0] >> index % 64 & 1)

    def count(self, row: int, size: int, slots: int) -> int:
        begin, words = self.row(row, size)
        return sum(word.bit_count() for word in numbers(begin, min((slots + 63) // 64, words)))


class Tags:
    """src/box/route: what the free finds at an address before it looks further."""

    def __init__(self, route: View, guard: str) -> None:
        match = re.search(r"FlatTable<(\d+)", route.name)
        if match is None:
            raise NoAnswerError(f"{route.name} is no table of tags: this script is for another version of the library")
        self.shift = int(match[1])
        self.base, self.pieces = int(route["base"]), int(route["pieces"])
        self.size = 1 if "char" in route.name else 4 if "unsigned int" in route.name else 8
        self.owned = self.size > 1
        # Tags and headers of pages are both words; a guard that proves nothing needs headers, which know every slot.
        self.headers = self.size == 8 and guard == "Outside"

    def covers(self, at: int) -> bool:
        return 0 <= (at - self.base) >> self.shift < self.pieces

    def find(self, at: int) -> int:
        if not self.covers(at):
            return 0
        word = int.from_bytes(memory(self.base + (at - self.base >> self.shift) * self.size, self.size), "little")
        if not self.headers:
            return word
        return 0 if word & 0xFFFF < at & 0xFFFF else word >> 16

    def bin(self, at: int) -> int:
        return self.find(at) & 0xFF


# --- what is asked of a heap


@dataclass
class ClassRow:
    """One class, over all its spans."""

    size: int
    spans: int = 0
    slots: int = 0  # that the spans have room for
    out: int = 0
    free: int = 0  # in spans
    unused: int = 0  # never handed out
    cached: int = 0
    waiting: int = 0


@dataclass
class Holding:
    """What one thread caches: slots by class, and those on their way to others."""

    title: str
    alive: bool  # it is a thread's own
    owner: int | None
    bins: dict[int, int]
    outbox: dict[int, int]


@dataclass
class Report:
    """All of `hz heap`."""

    figures: dict[str, int]
    rows: list[ClassRow]
    holdings: list[Holding]
    sizes: list[int]
    huge: tuple[int, int]  # blocks, bytes
    remarks: list[str] = field(default_factory=list)


@dataclass
class Answer:
    """All of `hz block`: labels and what they say."""

    rows: list[tuple[str, str]] = field(default_factory=list)

    def say(self, label: str, text: str) -> "Answer":
        self.rows.append((label, text))
        return self


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def span_text(size: int, slots: int, carved: int, free: int) -> str:
    return f"class {size:,}: {plural(slots, 'slot')}, {carved:,} handed out at least once, {free:,} of these free in it"


# --- a heap of boxes


class BoxHeap:
    def __init__(self, line: str, name: str, global_: View) -> None:
        self.line, self.struct, self.global_ = line, name, global_
        state = f"hz::State<hz::{name}>::"
        self.shelves, self.shared, self.keeper = (needed(state + one) for one in ("shelves", "shared", "purger_state"))
        self.exchange, self.pool = self.shelves["exchange"], self.shelves["pool"]
        self.guard = self.guard_of(self.shared["guard"].name)
        self.tags = Tags(global_["route"], self.guard)
        self.source, self.plan = global_["source"], global_["source"]["plan"]
        self.base = int(self.plan["base_"])
        self.stretches = self.used_stretches()
        self.runs = Table(self.source["book"]["runs"]["rows"], self.stretches)
        self.spans = Table(self.pool["table"]["spans"], self.stretches)
        self.sizes = list(needed("hz::classes")["size_"].data.cast("I"))
        self.huge_bin = len(self.sizes)
        self.heap_bin = self.huge_bin + 1  # of chunks of first-class heaps, which count as huge blocks
        self.free_bits = Bits(self.pool["table"]["bits"])
        self.pending = Bits(self.exchange["bits"]) if "bits" in self.exchange else None

    @staticmethod
    def guard_of(name: str) -> str:
        match = re.match(r"hz::(\w+)", name)
        return match[1] if match else name

    def is_open(self) -> bool:
        return bool(self.global_["open"])

    def is_used(self) -> bool:
        return self.is_open() and bool(self.source["book"]["reached"])

    # threads

    def states(self) -> list[Owner]:
        alive = list(walk(self.global_["threads"], "next"))
        known = named_threads(alive)
        found = [Owner(state, title_of(known.get(state.address)), True) for state in alive]
        found.sort(key=lambda one: known[one.state.address].num if one.state.address in known else 1 << 31)
        orphans = walk(self.global_["orphans"], "next")
        found += [Owner(state, "a thread that a fork left behind", False) for state in orphans]
        return [*found, Owner(self.shared, "threads without a state of their own", False)]

    def at_work(self, owners: list[Owner], number: int = 0) -> list[str]:
        """Who stands inside of the heap, so that a slot, of one class or any, may be in nobody's list."""
        amid = [Bins(one.state).amid() for one in owners]
        moving = [number in bins or (number == 0 and bins != []) for bins in amid]
        found = [one.title for one, moves in zip(owners, moving, strict=True) if moves or one.state["lock"]]
        found += ["the purger"] if self.keeper["lock"] else []
        others = bool(self.global_["threads_lock"]) or bool(self.source["lock"])
        return found or (["a thread that holds a lock of the heap"] if others else [])

    def holding(self, owner: Owner) -> Holding:
        bins = Bins(owner.state)
        counts = {number: bins.count(number) for number in range(1, self.huge_bin)}
        outbox = Counter(one.bin for one in outbox_of(owner.state))
        number = owner.owner if self.tags.owned and owner.state.address != self.shared.address else None
        cached = {n: count for n, count in counts.items() if count}
        return Holding(owner.title, owner.alive, number, cached, dict(outbox))

    # the exchange

    def waiting(self) -> Iterator[Waiting]:
        owners = int(self.global_["owners"]["end_"])
        if "of_cpu" in self.exchange:
            yield from in_depot(self.exchange)
        if "inboxes" in self.exchange:
            yield from in_inboxes(self.exchange, owners)
        if "sent" in self.exchange:
            yield from in_owner_lists(self.exchange, owners, self.sizes)

    # figures, as src/heap/views/stats.hpp has them

    def figures(self, owners: list[Owner]) -> dict[str, int]:
        events = enumerators("hz::Event")
        retain = self.global_["retain"]
        sums = {name: retain[name].signed() for name in ("out", "waiting")}
        peak, cached = int(retain["peak"]), 0
        counted = dict.fromkeys(events, 0)
        for state in [*(one.state for one in owners), self.keeper]:
            for name in sums:
                sums[name] += state["retain"][name].signed()
            peak = max(peak, sums["out"])
            for name, number in events.items():
                if name != "kCount":
                    counted[name] += int(state["observe"]["of_event"][number])
            cached += outbox_bytes(state)
            bins = Bins(state)
            cached += sum(bins.count(number) * self.sizes[number] for number in range(1, self.huge_bin))
        waiting, held = max(0, sums["waiting"]), max(0, sums["out"])
        cached += waiting + counted["kBytesSent"] - counted["kBytesCollected"]
        counting = bool(self.global_["counting"])
        live = counted["kBytesAllocated"] - counted["kBytesFreed"] if counting else max(0, held - cached)
        return {
            "bytes_held": held,
            "bytes_live": live,
            "bytes_cached": cached,
            "bytes_waiting": waiting,
            "bytes_dirty": int(self.source["book"]["dirty"]) << GRANULE_SHIFT,
            "bytes_purged": counted["kPurgedBytes"],
            "bytes_peak": peak,
            "bytes_metadata": self.metadata(),
            "threads": sum(1 for one in walk(self.global_["threads"], "next")),
        }

    def metadata(self) -> int:
        found = self.global_.type.sizeof + self.shelves.type.sizeof + int(self.global_["thread_memory"])
        found += chunk_bytes(self.global_["owners"]["rows_"])
        found += chunk_bytes(self.shelves["heaps"]["rows_"])
        if "inboxes" in self.exchange:
            found += chunk_bytes(self.exchange["inboxes"])
        if "of_cpu" in self.exchange:
            found += sum(int(store["bytes_"]) for store in self.stores())
        if self.is_open():
            usual = int(self.source["book"]["per_granule"]) - self.runs.type.sizeof
            found += int(self.source["book"]["reached"]) * usual
        return found

    def stores(self) -> View:
        """Of magazines. How a number is written in the name of a template is the compiler's choice."""
        magazine = self.exchange["of_cpu"][0][0]["first"].pointed_type()
        slots = Layouts.of(magazine)["slots"][1].sizeof // 8
        for suffix in ("u", "U", ""):
            found = symbol(f"hz::os::Magazines<hz::{self.struct}, {slots}{suffix}>::stores_")
            if found is not None:
                return found
        raise NoAnswerError("the debugging information has no stores of magazines")

    # spans

    def used_stretches(self) -> list[tuple[int, int]]:
        some = [self.plan["stretch_"][i] for i in range(int(self.plan["stretches_"]))]
        return [(int(one["begin"]), int(one["top"])) for one in some]

    def walk_runs(self) -> Iterator[tuple[int, View]]:
        """The first row of each run, in use or free."""
        for begin, top in self.stretches:
            row = begin
            while row < top:
                run = self.runs[row]
                length = int(run["length"])
                if length == 0 or row + length > top or int(run["state"]) not in (1, 2):
                    raise NoAnswerError(
                        f"the run of memory at {self.at(row):#x} has no proper length: the table of runs is damaged"
                    )
                yield row, run
                row += length

    def at(self, row: int) -> int:
        return self.base + (row << GRANULE_SHIFT)

    def row_of(self, at: int) -> int:
        return at - self.base >> GRANULE_SHIFT

    def bin_of(self, span: View) -> int:
        number = int(span["place"]) & 0xFF
        if number >= self.huge_bin:
            raise NoAnswerError(
                f"a span says that it is of class number {number}: the table at {span.address:#x} is damaged"
            )
        return number

    def slots_of(self, number: int) -> int:
        return 1 if self.sizes[number] > MEDIUM_MAX else GRANULE // self.sizes[number]

    def rows(self) -> tuple[list[ClassRow], tuple[int, int]]:
        """By class; and how many huge blocks there are, of how many bytes."""
        found = [ClassRow(size) for size in self.sizes]
        blocks = bytes_ = 0
        for row, run in self.walk_runs():
            if int(run["state"]) != 1 or int(run["head"]) != row:
                continue
            span = self.spans[row]
            number = self.bin_of(span)
            if number:
                self.add_span(found[number], number, span)
            elif self.tags.bin(self.at(row)) in (self.huge_bin, self.heap_bin):
                blocks, bytes_ = blocks + 1, bytes_ + (int(run["length"]) << GRANULE_SHIFT)
        profile = symbol("hz::HeapProfile::state")
        if profile is not None and int(profile["samples"]) != 0:
            # They have runs, too, and count as blocks of their classes.
            blocks -= int(profile["samples"])
            bytes_ = int(self.global_["huge_bytes"]) - int(profile["sample_bytes"])
        return found, (blocks, bytes_)

    def add_span(self, row: ClassRow, number: int, span: View) -> None:
        carved, free = int(span["carved"]), int(span["free"])
        slots = self.slots_of(number)
        if not free <= carved <= slots:
            raise NoAnswerError(
                f"a span says that {carved} of {slots} slots were handed out, and {free} of these are free: the table"
                f" at {span.address:#x} is damaged"
            )
        row.spans, row.slots = row.spans + 1, row.slots + slots
        row.out, row.free, row.unused = row.out + carved - free, row.free + free, row.unused + slots - carved

    def report(self) -> Report:
        owners = self.states()
        rows, huge = self.rows()
        holdings = [self.holding(one) for one in owners]
        for holding in holdings:
            for number, count in holding.bins.items():
                rows[number].cached += count
            for number, count in holding.outbox.items():
                rows[number].waiting += count
        for some in self.waiting():
            rows[some.bin].waiting += len(some.slots)
        self.add_pending(rows)
        report = Report(self.figures(owners), rows, holdings, self.sizes, huge)
        at_work = self.at_work(owners)
        if at_work:
            report.remarks.append(
                f"{', '.join(at_work)}: inside of the heap, so figures may be off by what is in its hands"
            )
        return report

    def add_pending(self, rows: list[ClassRow]) -> None:
        if self.pending is None:
            return
        for row, run in self.walk_runs():
            number = self.bin_of(self.spans[row]) if int(run["state"]) == 1 else 0
            if number:
                rows[number].waiting += self.pending.count(row, self.sizes[number], self.slots_of(number))

    # one address

    def run_at(self, row: int) -> tuple[int, View] | None:
        """The run that a row is of; far inside of a long one all have to be walked along."""
        if not any(begin <= row < top for begin, top in self.stretches):
            return None
        head = int(self.runs[row]["head"])
        if int(self.runs[row]["state"]) == 1 and head != 0 and head <= row:
            run = self.runs[head]
            if int(run["state"]) == 1 and int(run["head"]) == head and row - head < int(run["length"]):
                return head, run
        return next((one for one in self.walk_runs() if one[0] <= row < one[0] + int(one[1]["length"])), None)

    def knows(self, at: int) -> bool:
        return self.is_open() and (self.tags.covers(at) or int(self.plan["lowest_"]) <= at < self.base)

    def answer(self, at: int) -> Answer:
        if not self.tags.covers(at):
            where = "in the tables of the heap, which no block lies in"
            return Answer().say("lies", where).say("a free", E01 + AT_ONCE)
        found = self.run_at(self.row_of(at))
        if found is None:
            return Answer().say("lies", "in the arena, where no memory was ever used").say("a free", E02 + AT_ONCE)
        row, run = found
        length = int(run["length"])
        if int(run["state"]) == 2 or int(run["head"]) != row:
            run_at = f"{plural(length, 'granule')} from {self.at(row):#x}"
            said = f"in free memory of the arena: {run_at}, {int(run['dirty']):,} with pages"
            return Answer().say("lies", said).say("a free", E02 + AT_ONCE)
        number = self.bin_of(self.spans[row])
        if number:
            return self.answer_for_slot(at, row, number)
        if self.tags.bin(self.at(row)) == self.huge_bin:
            return self.answer_for_huge(at, row, run)
        if self.tags.bin(self.at(row)) == self.heap_bin:
            return self.answer_for_chunk(at, self.at(row))
        said = (
            f"in {plural(length, 'granule')} from {self.at(row):#x} that nobody has: on its way to the system, or lost"
        )
        return Answer().say("lies", said).say("a free", E02 + AT_ONCE)

    def answer_for_huge(self, at: int, row: int, run: View) -> Answer:
        start, size = self.at(row), int(run["length"]) << GRANULE_SHIFT
        answer = Answer().say("block", f"{start:#x}, a huge block of {size:,} bytes")
        answer.say("address", "its start" if at == start else f"{at - start:,} bytes inside")
        answer.say("state", "another thread is freeing it" if run["claimed"] else "live")
        if at != start:
            # As the library finds it: rows far inside of a very long run do not name the first one.
            far = int(self.runs[self.row_of(at)]["head"]) != row
            return answer.say("a free", (E02 if far else E04) + AT_ONCE)
        return answer.say("a free", f"{E03}, and once that is done, {E02}" if run["claimed"] else "is right")

    @staticmethod
    def answer_for_chunk(at: int, start: int) -> Answer:
        chunk = View(plain(gdb.lookup_type("hz::HeapChunk")), start)
        used, starts, freed = (int(chunk[name]) for name in ("used", "starts", "freed"))
        holder = int(chunk["holder"])
        whose = f"first-class heap number {holder}" if holder else "a first-class heap that was deleted"
        answer = Answer().say("chunk", f"{start:#x} of {whose}, {used:,} of {GRANULE:,} bytes handed out")
        begun = starts & (2 << (at - start >> UNIT_SHIFT)) - 1  # what begins up to there
        if at - start >= used or begun == 0:
            return answer.say("state", "never handed out").say("a free", E02 + AT_ONCE)
        unit = begun.bit_length() - 1
        block, behind = start + (unit << UNIT_SHIFT), starts >> unit + 1
        end = block + ((behind & -behind).bit_length() << UNIT_SHIFT) if behind else start + used
        answer.say("block", f"{block:#x}, of {end - block:,} bytes")
        answer.say("address", "its start" if at == block else f"{at - block:,} bytes inside")
        is_free = bool(freed >> unit & 1)
        answer.say("state", "free, for the next one of its heap" if is_free else LIVE)
        if at != block:
            return answer.say("a free", E04 + AT_ONCE)
        return answer.say("a free", E03 + AT_ONCE if is_free else "is right")

    def answer_for_slot(self, at: int, row: int, number: int) -> Answer:
        span, size = self.spans[row], self.sizes[number]
        carved, free, slots = int(span["carved"]), int(span["free"]), self.slots_of(number)
        start = self.at(row)
        index = (at - start) // size
        slot = start + index * size
        owner = f", owner {int(span['owner'])}" if self.tags.owned else ""
        answer = Answer().say("span", f"{start:#x} of {span_text(size, slots, carved, free)}{owner}")
        if index >= slots:
            answer.say("slot", f"none: the address is behind the last one, which ends at {start + slots * size:#x}")
            return answer.say("state", "never handed out").say("a free", self.free_of_none(at, number))
        inside = "its start" if at == slot else f"{at - slot:,} bytes inside"
        answer.say("slot", f"{slot:#x}, number {index:,}, of {size:,} bytes").say("address", inside)
        if index >= carved:
            return answer.say("state", "never handed out").say("a free", self.free_of_none(at, number))
        owners = self.states()
        places, latest = self.places_of(slot, row, index, number, owners)
        state, is_free = self.state_of(slot, number, places, self.at_work(owners, number))
        return answer.say("state", state).say("a free", self.free_of(at, number, is_free, latest))

    def places_of(self, slot: int, row: int, index: int, number: int, owners: list[Owner]) -> tuple[list[str], str]:
        """Where a free slot lies: one place, unless it was freed twice; and who freed it last, and could tell."""
        found = ["free in its span"] if self.free_bits.has(row, self.sizes[number], index) else []
        latest = ""
        for one in owners:
            slots = Bins(one.state).slots(number)
            found += [f"cached by {one.title}"] * slots.count(slot)
            outbox = outbox_of(one.state)
            found += [f"in the outbox of {one.title}, for owner {d.owner}" for d in outbox if d.slot == slot]
            # While operations are counted, the free itself sees a state that is always empty.
            if not self.global_["counting"] and slot in (*slots[-1:], *(last.slot for last in outbox[-1:])):
                latest = one.title
        for some in self.waiting():
            if some.bin == number:
                found += [f"free, waiting in the exchange: {some.where}"] * some.slots.count(slot)
        if self.pending is not None and self.pending.has(row, self.sizes[number], index):
            found.append("freed by another thread, waiting for the owner of its span")
        return found, latest

    # guards

    def byte_of(self, slot: int, number: int) -> int:
        table, _, shift = next(one for one in SLOT_BYTES if self.sizes[number] < one[1])
        place = int(needed(f"hz::SlotBytes<hz::{self.struct}>::{table}")) + (slot >> shift)
        return memory(place & (1 << 64) - 1, 1)[0]

    def is_marked(self, slot: int) -> bool:
        return numbers(slot + 8, 1)[0] == int(self.shared["guard"]["mark"])

    def said_of(self, slot: int, number: int) -> tuple[str, bool | None]:
        """What the guard has written down about a slot, and whether that is: free. Nothing, where it writes down
        nothing."""
        if self.guard == "FailFast":
            return "the mark of a free slot", self.is_marked(slot)
        if self.guard in ("SlotState", "Lifecycle"):
            names = SLOT_STATES if self.guard == "SlotState" else PHASES
            word = self.byte_of(slot, number) & (0xFF if self.guard == "SlotState" else 7)
            if word >= len(names):
                raise NoAnswerError(f"the state of the slot at {slot:#x} is {word}: the table of states is damaged")
            return names[word], names[word] != LIVE
        return "", None

    def state_of(self, slot: int, number: int, places: list[str], at_work: list[str]) -> tuple[str, bool | None]:
        """In words; and whether it is free, if that can be told."""
        said, is_free = self.said_of(slot, number)
        if len(places) > 1:
            return f"in {len(places)} places, which is a double free that was not found yet: {', '.join(places)}", True
        if places and is_free is False and self.guard == "FailFast" and not at_work:
            return f"{places[0]}, and written to since: E06 write-after-free, when it leaves there", True
        if places and is_free is False:
            return f"cannot tell: {places[0]}, and its state says that it is live", False
        if places:
            return places[0], True
        if is_free:
            who = (
                f"in the hands of {', '.join(at_work)}"
                if at_work
                else "lost to a fork, or kept out of use after a report"
            )
            return f"free, cannot tell where: its state says '{said}', and it is in no list; {who}", True
        if is_free is None and at_work:
            return f"cannot tell: live, or in the hands of {', '.join(at_work)}", None
        return LIVE, False

    def free_of_none(self, at: int, number: int) -> str:
        """Of what lies in a span and was never handed out."""
        if self.tags.find(at) == 0:
            return E02 + AT_ONCE
        return self.free_of(at, number, False, "", E02)

    def free_of(self, at: int, number: int, is_free: bool | None, latest: str, otherwise: str = "") -> str:
        """As Judge and the guard have it."""
        size = self.sizes[number]
        if self.tags.find(at) == 0 or (at & (GRANULE - 1)) % min(size, GRANULE) != 0:
            return E04 + AT_ONCE
        if self.guard == "FailFast" and self.is_marked(at):  # that is all it knows
            return E03 + AT_ONCE
        if is_free is None:
            return f"cannot tell: it is right, or {E03}"
        fault = otherwise or (E03 if is_free else "")
        if not fault:
            return "is right"
        if self.guard == "FailFast":
            return fault + LATER
        if self.guard == "Outside":
            return f"{E03}{AT_ONCE} if {latest} frees it; else{LATER[1:]}" if latest else fault + LATER
        return fault + AT_ONCE


# --- the heap of one lock


class OneLockHeap:
    """hz7: src/heap/one_lock."""

    def __init__(self, line: str, name: str, counts: View) -> None:
        self.line, self.struct, self.counts = line, name, counts
        self.kinds = {number: kind for kind, number in enumerators("hz::one_lock::Table::Kind").items()}
        self.region = plain(gdb.lookup_type("hz::one_lock::Region"))
        self.notes = plain(gdb.lookup_type("hz::one_lock::HugeBlocks::Notes"))
        self.leaves = self.word("Table::leaves").data.cast("Q")

    @staticmethod
    def word(name: str) -> View:
        return needed(f"hz::one_lock::{name}")

    def is_used(self) -> bool:
        return bool(self.counts["peak"])

    def kind(self, at: int) -> str:
        if at >> ADDRESS_BITS:
            return "kNothing"
        leaf = self.leaves[at >> REGION_SHIFT + LEAF_BITS]
        number = memory(leaf + (at >> REGION_SHIFT & (1 << LEAF_BITS) - 1), 1)[0] if leaf else 0
        if number not in self.kinds:
            raise NoAnswerError(f"the table of regions has {number} for {at:#x}: it is damaged")
        return self.kinds[number]

    def of_kind(self, kind: str) -> Iterator[int]:
        number = next(number for number, name in self.kinds.items() if name == kind)
        for high, leaf in enumerate(self.leaves):
            if leaf:
                kinds = bytes(memory(leaf, 1 << LEAF_BITS))
                for low in range(len(kinds)):
                    if kinds[low] == number:
                        yield (high << LEAF_BITS | low) << REGION_SHIFT

    def at_work(self) -> str:
        return (
            "a thread is at work in the heap" if self.word("HeapLock::lock") or self.word("HeapLock::at_work") else ""
        )

    # figures

    def figures(self) -> dict[str, int]:
        live = int(self.counts["live"])
        return {
            "bytes_held": live,
            "bytes_live": live,
            "bytes_cached": 0,
            "bytes_waiting": 0,
            "bytes_dirty": int(self.word("Account::dirty_bytes")),
            "bytes_purged": int(self.word("Account::purged_bytes")),
            "bytes_peak": int(self.counts["peak"]),
            "bytes_metadata": int(self.word("Account::regions")) * TOUCHED_NOTES
            + int(self.word("Account::huge_blocks")) * PAGE,
            "threads": 0,
        }

    def report(self) -> Report:
        rows: dict[int, ClassRow] = {}
        for start in self.of_kind("kSpans"):
            for span in self.spans_of(View(self.region, start)):
                self.add_span(rows, span)
        found = [rows[number] for number in sorted(rows)]
        huge = int(self.word("Account::huge_blocks")), int(self.word("Account::huge_bytes"))
        report = Report(self.figures(), found, [], [], huge)
        if self.at_work():
            report.remarks.append(f"{self.at_work()}: figures may be off by what it has in its hands")
        return report

    @staticmethod
    def granules_of(span: View) -> int:
        return -(-int(span["slot_bytes"]) * int(span["slots"]) // GRANULE)

    def span_at(self, region: View, granule: int) -> View:
        span = region["spans"][granule]
        proper = int(span["used"]) <= int(span["carved"]) <= int(span["slots"])
        if not proper or granule + self.granules_of(span) > len(region["spans"]):
            raise NoAnswerError(f"the notes of the span at {span.address:#x} are damaged")
        return span

    def spans_of(self, region: View) -> Iterator[View]:
        granule = 1
        while granule < len(region["spans"]):
            length = 1
            if int(region["used"]) >> granule & 1:
                span = self.span_at(region, granule)
                length = self.granules_of(span)
                if length == 0:
                    raise NoAnswerError(f"the notes of the span at {span.address:#x} are damaged")
                yield span
            granule += length

    @staticmethod
    def add_span(rows: dict[int, ClassRow], span: View) -> None:
        size, slots, used, carved = (int(span[name]) for name in ("slot_bytes", "slots", "used", "carved"))
        row = rows.setdefault(int(span["bin"]), ClassRow(size))
        row.spans, row.slots, row.out = row.spans + 1, row.slots + slots, row.out + used
        row.free, row.unused = row.free + carved - used, row.unused + slots - carved

    # one address

    def knows(self, at: int) -> bool:
        return self.kind(at) != "kNothing"

    def answer(self, at: int) -> Answer:
        answer = self.answer_at_rest(at)
        if self.at_work():
            answer.say("but", f"{self.at_work()}, and may be about to change that")
        return answer

    def answer_at_rest(self, at: int) -> Answer:
        kind = self.kind(at)
        if kind == "kGone":
            said = "where memory of the heap was, which the system has again"
            return Answer().say("lies", said).say("a free", E02 + AT_ONCE)
        return self.answer_in_region(at) if kind == "kSpans" else self.answer_in_huge(at)

    def answer_in_huge(self, at: int) -> Answer:
        start = at & -REGION
        while self.kind(start) == "kHugeRest":
            start -= REGION
        notes = View(self.notes, start)
        block, usable = int(notes["block"]), int(notes["usable"])
        answer = Answer().say("block", f"{block:#x}, a huge block of {usable:,} bytes")
        if at == block:
            return answer.say("address", "its start").say("state", "live").say("a free", "is right")
        if at < block:
            answer.say("address", f"{block - at:,} bytes before it, in what the heap keeps about it")
        else:
            beyond = " its end" if at >= block + usable else ""
            answer.say(
                "address",
                f"{at - block - (usable if beyond else 0):,} bytes {'behind' if beyond else 'inside'}{beyond}",
            )
        before = at < block and self.kind(at) == "kHuge"
        return answer.say("state", "live").say("a free", (E02 if before else E04) + AT_ONCE)

    def answer_in_region(self, at: int) -> Answer:
        region = View(self.region, at & -REGION)
        granule = at >> GRANULE_SHIFT & len(region["spans"]) - 1
        in_use = bool(int(region["used"]) >> granule & 1)
        if granule and in_use:
            granule = self.first_of_run(region, granule)
        span = self.span_at(region, granule)
        size, slots, carved = int(span["slot_bytes"]), int(span["slots"]), int(span["carved"])
        start = region.address + (granule << GRANULE_SHIFT)
        if granule == 0:
            return Answer().say("lies", "in the notes of a region of the heap").say("a free", E02 + AT_ONCE)
        if size == 0:
            return Answer().say("lies", "in a granule that was never used").say("a free", E02 + AT_ONCE)
        was = "" if in_use else "was, until it ended: "
        index = (at - start) // size
        slot = start + index * size
        answer = Answer().say(
            "span", f"{was}{start:#x} of {span_text(size, slots, carved, carved - int(span['used']))}"
        )
        if index >= slots:
            answer.say("slot", f"none: the address is behind the last one, which ends at {start + slots * size:#x}")
            return answer.say("state", "never handed out").say("a free", E02 + AT_ONCE)
        answer.say("slot", f"{slot:#x}, number {index:,}, of {size:,} bytes")
        answer.say("address", "its start" if at == slot else f"{at - slot:,} bytes inside")
        if index >= carved:
            return answer.say("state", "never handed out").say("a free", E02 + AT_ONCE)
        taken = int(region["taken"][granule][index // 64]) >> index % 64 & 1
        answer.say("state", "live" if taken else "free in its span" if in_use else "free")
        fault = E04 if at != slot else "" if taken else E03
        return answer.say("a free", fault + AT_ONCE if fault else "is right")

    def first_of_run(self, region: View, granule: int) -> int:
        for first in range(granule, 0, -1):
            span = region["spans"][first]
            if span["used"] and granule - first < self.granules_of(span):
                return first
        return granule


Heap = BoxHeap | OneLockHeap


# --- which heap


def find_heaps() -> list[Heap]:
    """A process has one as a rule; a second one may be there by the direct API."""
    if not gdb.selected_inferior().threads():
        raise NoAnswerError("there is no process and no core file")
    found: list[Heap] = []
    for line, name in LINES.items():
        if (boxes := symbol(f"hz::State<hz::{name}>::global")) is not None:
            found.append(BoxHeap(line, name, boxes))
        elif (counts := symbol(f"hz::one_lock::Heap<hz::{name}>::counts")) is not None:
            found.append(OneLockHeap(line, name, counts))
    if not found:
        raise NoAnswerError(why_none())
    return found


def used_heaps() -> list[Heap]:
    heaps = find_heaps()
    used = [heap for heap in heaps if heap.is_used()]
    if not used:
        lines = " and ".join(heap.line for heap in heaps)
        raise NoAnswerError(f"the library of {lines} is in this process, and has not handed out anything")
    return used


def why_none() -> str:
    try:
        at = int(gdb.parse_and_eval("(unsigned long)&hz_line"))
    except gdb.error:
        return "no library of Hakozuna is in this process, as far as gdb has loaded its symbols"
    library = gdb.solib_name(at) or "the program"
    return (
        f"gdb has no debugging information of {library}: Debian has it in the package libhakozuna0-dbgsym; a build of"
        " the sources has it, unless it was stripped"
    )


def library_of(heap: Heap) -> str:
    at = (heap.global_ if isinstance(heap, BoxHeap) else heap.counts).address
    return gdb.solib_name(at) or "the program itself"


def version() -> str:
    description = symbol("hz::description")
    if description is None:
        return "of an unknown version"
    return bytes(description["release"].data).split(b"\0")[0].decode("ascii", "replace")


# --- what is printed


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        yield "  " + "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))


def head_lines(heap: Heap, report: Report) -> Iterator[str]:
    yield f"{heap.line} {version()} in process {gdb.selected_inferior().pid}: {library_of(heap)}"
    yield from (f"  {remark}" for remark in report.remarks)
    width = max(len(f"{report.figures[name]:,}") for name in FIGURES)
    for name, words in FIGURES.items():
        yield f"  {name:<14} {report.figures[name]:>{width},}  {words}"
    counted = sum(row.out * row.size for row in report.rows) + report.huge[1]
    if counted != report.figures["bytes_held"]:
        yield f"  counted span by span {counted:,} bytes are held, which is not what the heap's books say"


def amounts(counts: dict[int, int], sizes: list[int]) -> tuple[int, int]:
    return sum(counts.values()), sum(count * sizes[number] for number, count in counts.items())


def thread_lines(report: Report, in_full: bool) -> Iterator[str]:
    if not report.holdings:
        yield "threads: this line caches nothing for them"
        return
    yield "what threads cache"
    holdings = [one for one in report.holdings if one.alive or one.bins or one.outbox]
    shown = holdings
    if not in_full and len(holdings) > SHOWN_THREADS:
        shown = sorted(holdings, key=lambda one: -amounts(one.bins, report.sizes)[1])[:SHOWN_THREADS]
    for one in shown:
        yield thread_line(one, report.sizes)
        if in_full:
            yield from thread_classes(one, report.sizes)
    if len(shown) < len(holdings):
        yield f"  and {len(holdings) - len(shown):,} threads that cache less: hz heap threads"


def thread_line(one: Holding, sizes: list[int]) -> str:
    slots, size = amounts(one.bins, sizes)
    text = f"  {one.title}: {plural(slots, 'slot')}, {size:,} bytes"
    if one.owner is not None:
        text += f"; owner {one.owner}"
    if one.outbox:
        slots, size = amounts(one.outbox, sizes)
        text += f"; in its outbox {plural(slots, 'slot')}, {size:,} bytes"
    return text


def thread_classes(one: Holding, sizes: list[int]) -> Iterator[str]:
    for number in sorted({*one.bins, *one.outbox}):
        outbox = f", and {one.outbox[number]:,} in the outbox" if number in one.outbox else ""
        yield f"    class {sizes[number]:,}: {one.bins.get(number, 0):,}{outbox}"


def class_lines(report: Report, in_full: bool) -> Iterator[str]:
    rows = [row for row in report.rows if row.spans]
    yield "spans by class" if rows else "there are no spans"
    if rows:
        head = ("class", "spans", "slots", "out", "free", "unused", "full")
        more = ("live", "cached", "waiting") if in_full else ()
        yield from table(head + more, [class_row(row, in_full) for row in rows])
    blocks, size = report.huge
    yield f"  huge: {plural(blocks, 'block')} of {size:,} bytes together"


def class_row(row: ClassRow, in_full: bool) -> tuple[str, ...]:
    counts = [row.size, row.spans, row.slots, row.out, row.free, row.unused]
    words = [f"{count:,}" for count in counts] + [f"{100 * row.out // row.slots} %"]
    more = [row.out - row.cached - row.waiting, row.cached, row.waiting] if in_full else []
    return tuple(words + [f"{count:,}" for count in more])


# --- the commands


def address_of(text: str) -> int:
    if not text.strip():
        raise NoAnswerError("hz block needs an address: any expression that gdb understands")
    try:
        value = gdb.parse_and_eval(text)
        if plain(value.type).code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        code = plain(value.type).code
        if code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_FUNC) and value.address is not None:
            value = value.address
        elif code not in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_INT):
            raise NoAnswerError(f"{text} is no address: it is of type {value.type}")
        return int(value) & (1 << 64) - 1
    except gdb.error as error:
        raise NoAnswerError(f"{text} is no address: {error}") from None


class Command(gdb.Command):
    """Says what is wrong in one line, whatever it is."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        Layouts.known.clear()
        try:
            for line in self.lines(argument):
                print(line)
        except NoAnswerError as trouble:
            raise gdb.GdbError(f"hz: {trouble}") from None
        except gdb.error as error:
            raise gdb.GdbError(f"hz: {error}") from None
        except Exception as error:  # where tables make no sense, what was read of them may lead anywhere
            raise gdb.GdbError(f"hz: the heap is damaged, or of another version than this script: {error!r}") from None

    def lines(self, argument: str) -> Iterator[str]:
        raise NotImplementedError


class HeapCommand(Command):
    """What the heap holds: hz heap [classes | threads]

    Says which line and version serves the process, the figures of its statistics, what each thread caches, and its
    spans by class. `hz heap classes` says of each class, too, how many of the slots that are out are live, cached, and
    waiting for others; `hz heap threads` says of each thread what it caches by class."""

    PARTS = ("classes", "threads")

    def __init__(self) -> None:
        super().__init__("hz heap", gdb.COMMAND_DATA)

    def complete(self, text: str, word: str) -> list[str]:
        return [part for part in self.PARTS if part.startswith(word)]

    def lines(self, argument: str) -> Iterator[str]:
        part = argument.strip()
        if part not in ("", *self.PARTS):
            raise NoAnswerError(f"hz heap {part}: there are hz heap, hz heap classes and hz heap threads")
        for heap in used_heaps():
            report = heap.report()
            yield from head_lines(heap, report)
            if part != "classes":
                yield from thread_lines(report, part == "threads")
            if part != "threads":
                yield from class_lines(report, part == "classes")


class BlockCommand(Command):
    """Whose block an address lies in: hz block ADDRESS

    ADDRESS is any expression. Says the span, the slot and how far inside of it the address is; whether it is live, free
    in its span, cached by a thread, on its way to its owner or waiting, or never was handed out; and what a free of the
    address would be reported as."""

    def __init__(self) -> None:
        super().__init__("hz block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def lines(self, argument: str) -> Iterator[str]:
        at = address_of(argument)
        heaps = used_heaps()
        if at == 0:
            yield "0x0 is no address of anybody's"
            yield f"  {'a free':<8} is right, and does nothing"
            return
        for heap in heaps:
            if heap.knows(at):
                answer = heap.answer(at)
                yield f"{at:#x} in the heap of {heap.line}"
                yield from (f"  {label:<8} {text}" for label, text in answer.rows)
                return
        yield f"{at:#x} is not of the heap of {' or '.join(heap.line for heap in heaps)}"
        yield f"  {'a free':<8} {E01}{AT_ONCE}"


class HzPrefix(gdb.Command):
    """What the heap of Hakozuna holds: hz heap, hz block ADDRESS"""

    def __init__(self) -> None:
        super().__init__("hz", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


HzPrefix()
HeapCommand()
BlockCommand()
