# SPDX-License-Identifier: Apache-2.0
"""Sizes, alignments, classes, slots and routes, proved for all inputs: z3 looks for one that breaks a claim about what
clang made of the functions in arithmetic/ (llvm_ir.py), and must find none. Each claim is tried on wrong versions of
the headers as well, WRONG: there z3 must find one; a part of them each day.

Size classes are proved as they begin; for a spare class that is dealt out, the reciprocal of every size that it may
have. Takes 20 seconds of a processor, most of it z3's."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]
from llvm_ir import Module, Outcome, compiled, defined

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent / "arithmetic"
CLASSES = "_ZN2hz7classesE"
TABLES = (CLASSES,)
GRANULE, LARGE_MAX, TABLE_MAX, MEDIUM_MAX = 1 << 16, 4 << 20, 128 << 10, 64 << 10


class WrongError(Exception):
    pass


def word(name: str, bits: int = 64) -> Any:
    return z3.BitVec(name, bits)


def wide(value: Any) -> Any:
    return z3.ZeroExt(64, value)


def holds(claim: Any, *given: Any) -> None:
    """Or says for what it does not."""
    solver = z3.SolverFor("QF_BV")
    all_of = [z3.simplify(z3.And(*given, z3.Not(claim)))]
    solver.add(*all_of, *defined(*all_of))
    found = solver.check()
    assert found != z3.unknown
    if found == z3.sat:
        raise WrongError(str(solver.model()))


def power_of_two(n: Any) -> Any:
    return z3.And(n != 0, n & (n - 1) == 0)


def finished(outcome: Outcome, *given: Any) -> Any:
    """What it returns, when it ends by itself, and read no table beyond its end."""
    holds(z3.Not(outcome.unfinished), *given)
    for event in outcome.of("table"):
        holds(z3.Implies(event.when, z3.ULT(event.at, event.value)), *given)
    return outcome.value


class Ir:
    """What was compiled of the headers; those that lie in `instead` take the place of the others."""

    def __init__(self, instead: Path | None = None) -> None:
        self.folders = [f"-I{folder}" for folder in (instead, ROOT / "src", ROOT / "include") if folder]

    @cache  # noqa: B019  # as long as the version
    def module(self, name: str) -> Module:
        line = ('-DHZ_LINE_HEADER="line/hakozuna.hpp"', "-DHZ_LINE=hz::Hakozuna")
        return compiled(HERE / f"{name}.cpp", *self.folders, *line)

    def run(self, name: str, *arguments: Any, of: str = "units", given: Any = True) -> Outcome:
        return self.module(of).run(name, *arguments, tables=TABLES, given=given)

    def call(self, name: str, *arguments: Any, given: Any = True) -> Any:
        return finished(self.run(name, *arguments, given=given), given)

    def number(self, name: str, of: str = "units") -> int:
        return int(z3.simplify(self.run(name, of=of).value).as_long())


Claim = Callable[[Ir], None]
CLAIMS: dict[str, Claim] = {}


def claim(function: Claim) -> Claim:
    CLAIMS[function.__name__] = function
    return function


N, A, AT, BASE, PIECES = word("n"), word("a"), word("at"), word("base"), word("pieces")


@claim
def align_up(ir: Ir) -> None:
    """The least multiple that is not below; 0 where that is 2**64, and so never a small multiple."""
    up = ir.call("align_up", N, A)
    exact = wide(up) == z3.If(z3.ULE(wide(N), 2**64 - wide(A)), wide(up), z3.BitVecVal(0, 128))
    holds(exact, power_of_two(A))
    fits = z3.ULE(wide(N) + wide(A) - 1, z3.BitVecVal(2**64 - 1, 128))
    holds(z3.And(up & (A - 1) == 0, z3.UGE(up, N), z3.ULT(up - N, A)), power_of_two(A), fits)


@claim
def powers_of_two(ir: Ir) -> None:
    holds((ir.call("is_power_of_two", N) == 1) == z3.Or([1 << bit == N for bit in range(64)]))
    log = z3.ZeroExt(32, ir.call("log2_floor", N))
    holds(z3.And(z3.ULT(log, 64), z3.LShR(N, log) == 1), N != 0)


def sizes_of_classes(ir: Ir) -> list[int]:
    table = ir.run("bin_size", word("b"))
    bins = ir.number("last_bin") + 1
    return [
        int(z3.simplify(z3.substitute(table.value, (word("b"), z3.BitVecVal(b, 64)))).as_long()) for b in range(bins)
    ]


@claim
def classes(ir: Ir) -> None:
    """A class's slots hold the size, and those of no smaller class that sizes have would."""
    last = ir.number("last_bin")
    in_reach = z3.And(N != 0, z3.ULE(N, LARGE_MAX))
    bin_of = ir.call("bin_for_size", N, given=in_reach)
    holds(z3.And(bin_of != 0, z3.ULE(bin_of, last)), in_reach)
    holds(bin_of == ir.call("scan_bin", N, given=in_reach), in_reach)
    size = ir.call("bin_size", bin_of, given=z3.And(in_reach, z3.ULE(bin_of, last)))
    holds(z3.UGE(size, N), in_reach)
    other = word("other")
    known = z3.And(other != 0, z3.ULE(other, last))
    spare = ir.call("is_spare", other) == 1
    fits = z3.UGE(ir.call("bin_size", other, given=known), N)
    holds(z3.Implies(z3.And(fits, z3.Not(spare)), z3.UGE(other, bin_of)), in_reach, known)
    holds(ir.call("bin_size", other, given=known) == ir.call("size_of_bin", other), known)


@claim
def aligned_classes(ir: Ir) -> None:
    """Above the medium classes: the class for an alignment holds the size and is alone in its span, which begins with a
    granule; or there is none, and it is huge. (Below, `unit` SizeClasses asks for every size and alignment.)"""
    last = ir.number("last_bin")
    beyond = z3.Or(z3.UGT(N, MEDIUM_MAX), z3.UGT(A, MEDIUM_MAX))
    given = z3.And(N != 0, beyond, power_of_two(A))
    bin_of = ir.call("aligned_bin", N, A, given=given)
    none = z3.Or(z3.UGT(N, LARGE_MAX), z3.UGT(A, GRANULE))
    holds(z3.If(none, bin_of == last + 1, z3.ULE(bin_of, last)), given)
    large = ir.run("bin_size", bin_of).value  # alone in its span, which begins with a granule
    holds(z3.And(z3.UGT(large, MEDIUM_MAX), z3.UGE(large, N)), given, z3.Not(none))


@claim
def spans(ir: Ir) -> None:
    """A span holds its slots, and no further one."""
    size, bin_of = word("size"), word("b")
    known = z3.And(bin_of != 0, z3.ULE(bin_of, ir.number("last_bin")))
    slots = z3.ZeroExt(32, ir.call("bin_slots", bin_of, given=known))
    granules = z3.ZeroExt(32, ir.call("bin_granules", bin_of, given=known))
    size = ir.call("bin_size", bin_of, given=known)
    large = z3.UGT(size, MEDIUM_MAX)
    holds(z3.And(slots != 0, z3.ULE(slots * size, granules * GRANULE)), known)
    holds(z3.If(large, slots == 1, z3.UGT((slots + 1) * size, GRANULE)), known)
    holds(z3.UGT(size, (granules - 1) * GRANULE), known)


@claim
def slots(ir: Ir) -> None:
    """The index is the quotient, and what is said of a start is whether there is a remainder, for every offset in a
    span. First that both are read off the product with the class's reciprocal, then what that product is: it is linear
    in both parts of offset = slot * size + byte."""
    bin_of, offset = word("b"), z3.ZeroExt(16, word("offset", 16))
    given = z3.ULT(bin_of, ir.number("last_bin") + 1)
    product = z3.ZeroExt(32, offset) * z3.ZeroExt(32, ir.call("reciprocal", bin_of, given=given))
    holds(ir.call("slot_index", bin_of, offset, given=given) == z3.Extract(63, 32, product), given)
    start = z3.ULE(z3.Extract(31, 0, product), GRANULE - 1)
    holds((ir.call("is_slot_start", bin_of, offset, given=given) == 1) == start, given)
    slot, byte = z3.Ints("slot byte")
    for number, size in list(enumerate(sizes_of_classes(ir)))[1 : ir.number("last_medium_bin") + 1]:
        reciprocal = int(z3.simplify(ir.run("reciprocal", z3.BitVecVal(number, 64)).value).as_long())
        low = (slot * size + byte) * reciprocal - slot * 2**32  # of the product, if the index is the quotient
        solver = z3.SolverFor("QF_LIA")
        solver.add(slot >= 0, byte >= 0, byte < size, slot * size + byte < GRANULE)
        solver.add(z3.Not(z3.And(low >= 0, low < 2**32, (low < GRANULE) == (byte == 0))))
        if solver.check() != z3.unsat:
            raise WrongError(f"class {number}: {solver.model()}")


@claim
def reciprocals(ir: Ir) -> None:
    """Of every size that a class can be dealt: rounded up, by so little that quotients below 2**16 are exact. With
    r * size = 2**32 + e and offset = q * size + m, the product is q * 2**32 + (offset * e + m * 2**32) / size, and its
    second term is below 2**32 while offset * e < 2**32 and m < size."""
    size = z3.ZeroExt(47, word("size", 17))
    dealt = z3.And(size & 15 == 0, z3.UGE(size, 16), z3.ULE(size, GRANULE))
    reciprocal = z3.ZeroExt(32, ir.call("reciprocal_of", size))
    error = reciprocal * size - (1 << 32)
    holds(z3.And(z3.ULT(error, size), z3.ULT(error * (GRANULE - 1), 1 << 32)), dealt)


@claim
def slot_words(ir: Ir) -> None:
    """Each word of a slot's bits is its own: of a class all lie in one table, and a row has its part of it."""
    row, bin_of = z3.ZeroExt(44, word("row", 20)), word("bin")
    begins = [word("sparse"), word("wide"), word("dense")]
    words_of_class = ir.call("bits_words", bin_of)

    def place(number: Any) -> tuple[Any, Any]:
        bits = word("bits")
        outcome = ir.run("bits_word", bits, bin_of, row, number)
        # Where the three tables lie: three words of one object.
        known = [z3.Implies(e.at == bits + 8 * i, e.value == begins[i]) for e in outcome.of("load") for i in range(3)]
        return finished(outcome), z3.And(*known, z3.ULT(number, words_of_class))

    one, given_one = place(word("one"))
    other, given_other = place(word("other"))
    holds((one == other) == (word("one") == word("other")), given_one, given_other)
    rows, found = 1 << 20, []
    for begin, words in zip(begins, (1, 8, 64), strict=True):
        inside = z3.And(z3.UGE(one, begin), z3.ULT(one, begin + rows * words * 8))
        of_row = z3.And(z3.UGE(one, begin + row * words * 8), z3.ULT(one, begin + (row + 1) * words * 8))
        holds(z3.Implies(words_of_class == words, z3.And(inside, of_row)), given_one, *in_a_row(begins))
        found.append(words_of_class == words)
    holds(z3.And(z3.Or(found), one & 7 == 0), given_one, *in_a_row(begins))


def in_a_row(begins: list[Any]) -> list[Any]:
    """As SlotBits.open puts them, for so many rows; a begin that is free is as good as one place for it."""
    rows = 1 << 20
    lengths = (rows * 8, rows * 8 * 8)
    follow = [after == before + length for before, after, length in zip(begins, begins[1:], lengths, strict=False)]
    return [begins[0] & 7 == 0, z3.ULT(begins[0], 1 << 47), *follow]


@claim
def routes(ir: Ir) -> None:
    """An address is in the arena or not, whatever it is; and a tag is read of no place but its own in the table."""
    after = wide(BASE) + wide(PIECES) * GRANULE
    # Before the heap opens base is 2**63, and there are no pieces; the arena never passes the end of addresses.
    given = z3.And(z3.ULE(PIECES, 1 << 47), z3.ULE(after, z3.BitVecVal(1 << 64, 128)))
    for name, shift, size in (("byte_tag", 16, 1), ("page_header", 16, 8), ("page_tag", 12, 4)):
        pieces = PIECES << (16 - shift)
        outcome = ir.run(name, word("g"), AT)
        *known, tag = routes_words(outcome, pieces)
        inside = z3.And(z3.UGE(AT, BASE), z3.ULT(wide(AT), after))
        holds(z3.Implies(z3.Not(inside), outcome.value == 0), given, *known)
        piece = z3.LShR(AT - BASE, shift)
        own = z3.And(tag.at == BASE + piece * size, z3.ULT(piece, pieces))
        holds(z3.Implies(tag.when, z3.And(inside, own)), given, *known)
        holds(z3.Implies(inside, tag.when), given, *known)
    outcome = ir.run("covers", word("g"), AT)
    known = routes_words(outcome, PIECES)
    holds((outcome.value == 1) == z3.And(z3.UGE(AT, BASE), z3.ULT(wide(AT), after)), given, *known)


def routes_words(outcome: Outcome, pieces: Any) -> list[Any]:
    """What is known of the two words of the route that are loaded; and the load of the tag, if there is one."""
    g, out, tag = word("g"), [], []
    for event in outcome.of("load"):
        if z3.eq(z3.simplify(event.at), g):
            out.append(event.value == BASE)
        elif z3.eq(z3.simplify(event.at), z3.simplify(g + 8)):
            out.append(event.value == pieces)
        else:
            tag.append(event)
    return [*out, *tag]


@claim
def tags(ir: Ir) -> None:
    """Owner and class come out of a tag as they went in, and only the owner's own slots are its own."""
    owner, other, bin_of = word("owner", 32), word("other", 32), word("b")
    last = ir.number("last_bin")
    given = z3.And(z3.ULE(bin_of, last + 2), z3.ULT(owner, 2**24 - 1), z3.ULT(other, 2**24 - 1))
    tag = ir.call("tag_of", owner, bin_of)
    holds(z3.And(ir.call("tag_bin", tag) == bin_of, ir.call("tag_owner", tag) == owner, tag != 0), given)
    local = ir.call("tag_local", tag, other)
    holds(z3.ULE(local, last) == z3.And(owner == other, z3.ULE(bin_of, last)), given)
    holds(z3.Implies(owner == other, local == bin_of), given)
    holds(
        z3.Or(
            ir.call("tag_local", z3.BitVecVal(0, 64), other) == 0,
            z3.UGT(ir.call("tag_local", z3.BitVecVal(0, 64), other), last),
        )
    )


@claim
def chunks(ir: Ir) -> None:
    """What is cut from a chunk of a first-class heap lies behind all others, aligned, and in the chunk; its bit too."""
    chunk, size, alignment = word("chunk"), word("size"), word("alignment")
    outcome = ir.run("chunk_cut", chunk, size, alignment)
    used = next(e for e in outcome.of("load") if z3.eq(z3.simplify(e.at), z3.simplify(chunk + ir.number("chunk_used"))))
    before = z3.ZeroExt(32, used.value)
    head = ir.number("chunk_bytes")
    given = z3.And(
        chunk & (GRANULE - 1) == 0, z3.ULE(chunk, 1 << 47), size != 0, size & 15 == 0, z3.ULE(size, GRANULE),
        power_of_two(alignment), z3.UGE(alignment, 16), z3.ULE(alignment, GRANULE // 2),
        z3.UGE(before, head), z3.ULE(before, GRANULE), before & 15 == 0,
    )  # fmt: skip
    at = outcome.value
    inside = z3.And(z3.UGE(at, chunk + before), z3.ULE(at + size, chunk + GRANULE), at & (alignment - 1) == 0)
    holds(z3.Or(at == 0, inside), given)
    least = (before + alignment - 1) & ~(alignment - 1)
    holds((at == 0) == z3.UGT(least + size, GRANULE), given)
    for event in outcome.of("store"):
        place = event.at - chunk
        as_used = z3.And(place == ir.number("chunk_used"), at + size == chunk + wide_of(event.value))
        holds(z3.Implies(event.when, z3.Or(as_used, z3.And(z3.UGE(place, 16), z3.ULE(place + 8, head)))), given)
    any_at = word("any")
    around = ir.call("chunk_around", any_at)
    unit = z3.ZeroExt(32, ir.call("chunk_unit", any_at))
    holds(z3.And(around & (GRANULE - 1) == 0, z3.ULE(any_at - around - unit * 16, 15), z3.ULT(unit, GRANULE // 16)))
    number = ir.call("heap_number", any_at)
    holds(z3.ULT(number, 1 << 20))


def wide_of(value: Any) -> Any:
    return z3.ZeroExt(64 - value.size(), value) if value.size() < 64 else value


# --- the ways into the heap


def popped(ir: Ir, outcome: Outcome, right: Callable[[int], Any]) -> None:
    """What the thread takes at once is of a class whose size is right: it is read through the thread's bins, at 8 bytes
    for each class behind where they begin."""
    supply = next(e for e in outcome.of("load") if "@_ZN2hz2os9PerThread" in str(e.at)).value
    top = next(e for e in outcome.of("load") if e.value.size() == 64 and depends(e.at, supply))
    bin_of = z3.LShR(top.at - supply, 3)
    holds(z3.Or([z3.And(bin_of == b, right(size)) for b, size in enumerate(sizes_of_classes(ir)) if b != 0]), top.when)


def depends(on: Any, part: Any) -> bool:
    return z3.eq(on, part) or any(depends(child, part) for child in on.children())


@claim
def malloc(ir: Ir) -> None:
    """Who asks for n bytes gets a slot of a class that holds them, or goes the slow way with n as it was."""
    outcome = ir.run("way_malloc", N, of="heap")
    finished(outcome)
    slow = outcome.of("call", "malloc_slow")
    assert len(slow) == 1
    holds(slow[0].arguments[0] == N, slow[0].when)
    holds(z3.Implies(z3.Or(N == 0, z3.UGT(N, TABLE_MAX)), slow[0].when))
    popped(ir, outcome, lambda size: z3.ULE(N, size))


PRODUCT = z3.BitVec("product", 128)


def of_product(count: Any, size: Any, value: Any) -> Any:
    """The same with the product as a number of its own, whichever it is: what holds then holds of the true one."""
    low = (z3.simplify(count * size), z3.Extract(63, 0, PRODUCT))
    return z3.simplify(z3.substitute(value, (z3.simplify(wide(count) * wide(size)), PRODUCT), low))


@claim
def calloc(ir: Ir) -> None:
    """What is cleared is count * size bytes, of a slot that has them; a product of 2**64 and more is never a block."""
    count, size = word("count"), word("size")
    outcome = ir.run("way_calloc", count, size, of="heap")
    (clear,) = outcome.of("call", "memset")
    when, cleared = (of_product(count, size, value) for value in (clear.when, clear.arguments[2]))
    for event in outcome.of("table"):
        reached, at = (of_product(count, size, value) for value in (event.when, event.at))
        holds(z3.Implies(reached, z3.ULT(at, event.value)))
    holds(z3.And(wide(cleared) == PRODUCT, z3.ULE(PRODUCT, z3.BitVecVal(TABLE_MAX, 128))), when)
    (slow,) = outcome.of("call", "calloc_slow")
    holds(z3.And(slow.arguments[0] == count, slow.arguments[1] == size))
    holds(z3.Or(when, of_product(count, size, slow.when)))
    for name in ("way_calloc_slow", "way_reallocarray", "way_aligned_calloc"):
        refuses_too_much(ir, name)


def refuses_too_much(ir: Ir, name: str) -> None:
    count, size, other = word("count"), word("size"), word("other")
    before = {"way_calloc_slow": (), "way_reallocarray": (other,), "way_aligned_calloc": (other,)}[name]
    # Where the way is a jump to the heap's own, that one.
    own = [f for f in ir.module("heap").functions if name.removeprefix("way_") in f and f != name]
    function = own[0] if own else name
    outcome = ir.run(function, *before, count, size, of="heap")
    too_much = z3.UGE(PRODUCT, z3.BitVecVal(1 << 64, 128))
    refused = [e.when for e in outcome.of("call") if "no_memory" in e.name or "invalid" in e.name]
    holds(z3.Implies(too_much, of_product(count, size, z3.Or(refused))))
    last = {"zeroed": 1, "realloc_slow": 1, "realloc_null": 0}  # the argument that is the product
    served = [
        (e, e.arguments[i]) for e in outcome.of("call") for way, i in last.items() if f"{len(way)}{way}E" in e.name
    ]
    assert served
    for event, bytes_asked in served:
        when, bytes_of = (of_product(count, size, value) for value in (event.when, bytes_asked))
        holds(z3.And(z3.Not(too_much), wide(bytes_of) == PRODUCT), when)


@claim
def aligned(ir: Ir) -> None:
    """An alignment that is no power of two is refused; size and alignment go the slow way as they were."""
    outcome = ir.run("way_aligned", A, N, of="heap")
    finished(outcome)
    holds(z3.Not(power_of_two(A)) == z3.Or([refused.when for refused in outcome.of("call", "invalid")]))
    (slow,) = outcome.of("call", "aligned_slow")
    holds(z3.And(slow.arguments[0] == A, slow.arguments[1] == N), slow.when)
    beyond = z3.Or(z3.UGT(N, MEDIUM_MAX), z3.UGT(A, MEDIUM_MAX))
    holds(z3.Implies(z3.And(power_of_two(A), beyond), slow.when))
    popped(ir, outcome, lambda size: z3.And(z3.ULE(N, size), size & (A - 1) == 0))


@claim
def huge(ir: Ir) -> None:
    """Whole granules that hold the size; what is close to 2**63 or above asks for none, and so is not made small."""
    most = (1 << 63) - 1 - GRANULE
    held = ir.run("huge_bytes", N, of="heap").value
    given = z3.ULE(N, most)
    holds(z3.And(z3.UGE(held, N), held != 0, held & (GRANULE - 1) == 0, z3.ULT(held - N, GRANULE + 1)), given)
    function = next(f for f in ir.module("heap").functions if "4HugeI" in f and "8allocateE" in f)
    arguments = [word(f"argument{i}") for i in range(7)]
    arguments[1], arguments[5] = N, word("may", 1)
    outcome = ir.run(function, *arguments, of="heap")
    asked = [e for e in outcome.of("call") if "13acquire_wholeE" in e.name]
    assert asked
    for event in asked:
        granules = event.arguments[2]  # behind where the run is to be put, and the arena
        exact = z3.And(z3.UGE(granules << 16, N), z3.ULT(granules, 1 << 47))
        holds(z3.And(given, exact), event.when)


# --- wrong versions: of a header, what is put in the place of what; and the claim that fails then. Those of a group are
# compiled together, and have nothing to do with each other's claims.


@dataclass(frozen=True)
class Wrong:
    claim: str
    header: str
    old: str
    new: str


CLASSES_HPP, UNITS, FLAT, HEAP, RULES = (
    "base/size_classes.hpp", "base/units.hpp", "box/route/flat_table.hpp", "heap/api/heap.hpp", "export/c_rules.hpp",
)  # fmt: skip
CHUNKS, HUGE = "heap/state/heap_table.hpp", "heap/huge/huge.hpp"
WRONG = (
    (
        Wrong("align_up", UNITS, "return (n + alignment - 1) &", "return (n + alignment) &"),
        Wrong("powers_of_two", UNITS, "return n != 0 && (n & (n - 1)) == 0;", "return (n & (n - 1)) == 0;"),
        Wrong("slots", CLASSES_HPP, "<= 0xFFFF;", "<= 0x1FFFF;"),
        Wrong("spans", CLASSES_HPP, "(bin_size(bin) + kGranule - 1) >>", "bin_size(bin) >>"),
        Wrong("aligned_classes", CLASSES_HPP, "kLargeMax && alignment <= kGranule ? scan", "kLargeMax ? scan"),
        Wrong("slot_words", "base/slot_bits.hpp", "row * words + number", "row * kWide + number"),
        Wrong("routes", FLAT, "if (HZ_UNLIKELY(piece >= g.pieces", "if (HZ_UNLIKELY(piece > g.pieces"),
        Wrong("tags", FLAT, "return (Tag{owner} + 1) <<", "return Tag{owner} <<"),
        Wrong("malloc", HEAP, "= size - 1;  // of size 0", "= size - 2;  // of size 0"),
        Wrong("calloc", HEAP, "? M::cleared(slot, bytes)", "? M::cleared(slot, size)"),
        Wrong(
            "huge",
            HUGE,
            "size > kMaxBytes - kGranule) return nullptr;\n    const std::size_t granules",
            "size > 2 * kMaxBytes) return nullptr;\n    const std::size_t granules",
        ),
        Wrong(
            "aligned", RULES, "if (!is_power_of_two(alignment)) return invalid();\n  return ThisHeap", "return ThisHeap"
        ),
    ),
    (
        Wrong("classes", CLASSES_HPP, "return size <= kTableMax ?", "return size <= kTableMax + kMinAlign ?"),
        Wrong("routes", FLAT, ">> kShift < g.pieces.get();", ">> kShift <= g.pieces.get();"),
        Wrong("chunks", CHUNKS, "(at + bytes > kGranule)", "(at + bytes > kGranule + kMinAlign)"),
        Wrong("aligned", HEAP, "HZ_LIKELY((bin_size(bin) & (alignment - 1)) == 0) ? A::popped", "bin != 0 ? A::popped"),
        Wrong("huge", HUGE, "return (bytes + kGranule - 1) >>", "return bytes >>"),
        Wrong("malloc", HEAP, "(last >= M::kMostAtHand - M::", "(last > M::kMostAtHand - M::"),
        Wrong("calloc", RULES, "no_memory() : resize(block, bytes)", "resize(block, bytes) : nullptr"),
    ),
    (
        Wrong("reciprocals", CLASSES_HPP, "{1} << 32) + divisor - 1)", "{1} << 32) + divisor / 2)"),
        Wrong("tags", FLAT, "(tag >> kBinBits) - 1;", "(tag >> kBinBits);"),
        Wrong("chunks", CHUNKS, "static_cast<std::uint16_t>(address(at))", "static_cast<unsigned>(address(at))"),
    ),
    (Wrong("slots", CLASSES_HPP, "{1} << 32) + divisor - 1)", "{1} << 32) + 1 - 1)"),),
    (
        Wrong(
            "classes",
            CLASSES_HPP,
            "Bin{b - kFineMaxLog} * 4 + kLastFineBin - 3",
            "Bin{b - kFineMaxLog} * 4 + kLastFineBin - 2",
        ),
    ),
)


@pytest.fixture(scope="module")
def ir() -> Ir:
    return Ir()


@pytest.mark.parametrize("name", CLAIMS)
def test_for_all_inputs(ir: Ir, name: str) -> None:
    CLAIMS[name](ir)


def test_each_claim_is_tried_on_a_wrong_version() -> None:
    assert {wrong.claim for group in WRONG for wrong in group} == set(CLAIMS)


def changed(tmp_path: Path, group: tuple[Wrong, ...]) -> None:
    """Writes the headers of the group, with what is wrong, under `tmp_path`; requires that each text occurs once."""
    for wrong in group:
        header = tmp_path / wrong.header
        text = (header if header.exists() else ROOT / "src" / wrong.header).read_text(encoding="utf-8")
        assert text.count(wrong.old) == 1, wrong
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(text.replace(wrong.old, wrong.new), encoding="utf-8")


def test_the_headers_have_what_is_made_wrong(tmp_path: Path) -> None:
    for number, group in enumerate(WRONG):
        changed(tmp_path / str(number), group)


def tried() -> tuple[tuple[Wrong, ...], ...]:
    """Each takes a compiler and the solver several seconds: another group each day, all in `hz endure`."""
    return WRONG if os.environ.get("HZ_TEST_LONG") else (WRONG[date.today().toordinal() % len(WRONG)],)


@pytest.mark.parametrize("group", tried(), ids=lambda group: "-".join(wrong.claim for wrong in group))
def test_what_is_wrong_is_found(group: tuple[Wrong, ...], tmp_path: Path) -> None:
    changed(tmp_path, group)
    version = Ir(tmp_path)
    for wrong in group:
        with pytest.raises(WrongError):
            CLAIMS[wrong.claim](version)
