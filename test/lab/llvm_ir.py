# SPDX-License-Identifier: Apache-2.0
"""What a function computes, for all of its arguments at once: reads the LLVM IR that clang has made of it, and says in
z3's bit-vectors what it returns, and what it loads, stores and calls on the way. So what is proved is what was
compiled, and nothing was copied by hand. Used by arithmetic_test.py.

Covered is what arithmetic compiles to: integers, branches, loops up to a number of rounds (what is beyond them is told,
`Outcome.unfinished`), reads of tables that are constant, and structures. What cannot be known is any value: what was
loaded from elsewhere, what a call returned, an asm, a shift by too much. What is not covered is an error."""

import heapq
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import z3  # type: ignore[import-untyped]

Value = Any  # a bit-vector, a Pointer, or a list of values
TOKEN = re.compile(r'c"[^"]*"|[%@]"[^"]*"|[%@][\w.$-]+|"[^"]*"|![\w.]*|#\d+|-?\d+|[A-Za-z_][\w.]*|\.\.\.|[^\s]')
QUALIFIERS = {"inbounds", "nuw", "nsw", "exact", "volatile", "atomic", "tail", "musttail", "notail", "fastcc", "ccc"}
MOST_ROUNDS = 16
WIDE = 64  # bits of an address


@dataclass
class Type:
    kind: str  # int, pointer, array, struct, packed, void
    bits: int = 0
    count: int = 0
    parts: list["Type"] = field(default_factory=list)
    name: str = ""


@dataclass
class Pointer:
    """Into a table that is known: in so many bytes from its start; if `index` is set, `inner` bytes behind the begin of
    that element of the array there."""

    table: str
    offset: int
    index: Any = None
    stride: int = 0
    count: int = 0
    inner: int = 0


@dataclass
class Event:
    kind: str  # call, load, store, table
    when: Any
    name: str = ""
    at: Any = None
    value: Any = None
    arguments: list[Value] = field(default_factory=list)


@dataclass
class Outcome:
    value: Value
    events: list[Event]
    unfinished: Any

    def of(self, kind: str, name: str = "") -> list[Event]:
        return [e for e in self.events if e.kind == kind and name in e.name]


class Tokens:
    def __init__(self, text: str) -> None:
        self.all = TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.all[self.at] if self.at < len(self.all) else ""

    def next(self) -> str:
        self.at += 1
        return str(self.all[self.at - 1])

    def take(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self.at += 1
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            raise ValueError(f"expected {word}, found {self.peek()} in {' '.join(self.all)[:200]}")


def compiled(source: Path, *flags: str) -> "Module":
    """The module that clang makes of a file, at -O1: loops are not unrolled, and nothing becomes vectors."""
    command = ["clang++", "-std=c++20", "-O1", "-S", "-emit-llvm", "-fno-exceptions", "-fno-rtti", *flags]
    done = subprocess.run([*command, "-o", "-", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Module(done.stdout)


class Module:
    def __init__(self, text: str) -> None:
        self.types: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        self.functions: dict[str, list[str]] = {}
        self.known: dict[str, Type] = {}
        self.bytes_of: dict[str, bytes] = {}
        body: list[str] | None = None
        for line in text.splitlines():
            if body is not None:
                body.append(line)
                if line == "}":
                    body = None
            elif line.startswith("define"):
                match = re.search(r'@("[^"]*"|[\w.$-]+)\(', line)
                assert match
                body = self.functions[match[1].strip('"')] = [line]
            elif line.startswith("%") and " = type " in line:
                name, rest = line.split(" = type ", 1)
                self.types[name] = rest
            elif line.startswith("@"):
                name, rest = line.split(" = ", 1)
                self.globals[name[1:].strip('"')] = rest

    # --- types

    def type(self, tokens: Tokens) -> Type:
        word = tokens.next()
        if re.fullmatch(r"i\d+", word):
            made = Type("int", int(word[1:]))
        elif word == "ptr":
            made = Type("pointer")
        elif word in ("void", "label", "metadata"):
            made = Type("void")
        elif word in ("float", "double"):
            made = Type("int", 32 if word == "float" else 64)
        elif word == "[":
            count = int(tokens.next())
            tokens.need("x")
            made = Type("array", count=count, parts=[self.type(tokens)])
            tokens.need("]")
        elif word in ("{", "<"):
            packed = word == "<"
            if packed:
                tokens.need("{")
            made = Type("packed" if packed else "struct")
            while not tokens.take("}"):
                made.parts.append(self.type(tokens))
                tokens.take(",")
            if packed:
                tokens.need(">")
        elif word.startswith("%"):
            if word not in self.known:
                made = self.known[word] = Type("void", name=word)  # it may lead to itself
                text = self.types.get(word, "opaque")
                if text != "opaque":
                    vars(made).update(vars(self.type(Tokens(text))))
            made = self.known[word]
        else:
            raise ValueError(f"type {word}")
        while True:
            if tokens.take("*"):
                made = Type("pointer")
            elif tokens.peek() == "(":  # of a function
                depth = 0
                while True:
                    word = tokens.next()
                    depth += (word == "(") - (word == ")")
                    if depth == 0:
                        break
                made = Type("void")
            elif tokens.take("addrspace"):
                tokens.at += 3
            else:
                return made

    def align(self, of: Type) -> int:
        if of.kind == "int":
            return min(8, (of.bits + 7) // 8)
        if of.kind == "array":
            return self.align(of.parts[0])
        if of.kind == "packed":
            return 1
        return max((self.align(part) for part in of.parts), default=1) if of.kind == "struct" else 8

    def offsets(self, of: Type) -> list[int]:
        at, result = 0, []
        for part in of.parts:
            step = 1 if of.kind == "packed" else self.align(part)
            at = -(-at // step) * step
            result.append(at)
            at += self.size(part)
        return [*result, at]

    def size(self, of: Type) -> int:
        if of.kind == "int":
            return (of.bits + 7) // 8
        if of.kind == "array":
            return of.count * self.size(of.parts[0])
        if of.kind in ("struct", "packed"):
            step = self.align(of)
            return -(-self.offsets(of)[-1] // step) * step
        return 8

    # --- constant tables

    def table(self, name: str) -> bytes:
        """The first contents of a global."""
        if name not in self.bytes_of:
            tokens = Tokens(self.globals[name])
            while tokens.next() not in ("global", "constant"):
                pass
            of = self.type(tokens)
            self.bytes_of[name] = self.constant(of, tokens)
        return self.bytes_of[name]

    def constant(self, of: Type, tokens: Tokens) -> bytes:
        word = tokens.next()
        if word in ("zeroinitializer", "undef", "null"):
            return bytes(self.size(of))
        if of.kind == "int":
            number = {"true": 1, "false": 0}.get(word)
            return (int(word) if number is None else number).to_bytes(self.size(of), "little", signed=word[0] == "-")
        if word.startswith('c"'):
            return bytes(int(c[1:], 16) if len(c) == 3 else ord(c) for c in re.findall(r"\\..|[^\\]", word[2:-1]))
        if of.kind == "packed":
            tokens.need("{")
        out = bytearray()
        ends = self.offsets(of) if of.kind != "array" else None
        for number in range(of.count if of.kind == "array" else len(of.parts)):
            part = self.type(tokens)
            if ends:
                out += bytes(ends[number] - len(out))
            out += self.constant(part, tokens)
            tokens.take(",")
        tokens.next()
        if of.kind == "packed":
            tokens.need(">")
        return bytes(out) + bytes(self.size(of) - len(out))

    def run(self, name: str, *arguments: Value, tables: tuple[str, ...] = (), given: Any = True) -> Outcome:
        """Called with these arguments, of which `given` holds. `tables` are constant."""
        return Run(self, tables, z3.BoolVal(given) if given is True else given).function(
            self.functions[name], list(arguments)
        )


class Run:
    fresh_count = 0

    def __init__(self, module: Module, tables: tuple[str, ...], given: Any) -> None:
        self.m, self.tables, self.given = module, tables, given
        self.events: list[Event] = []
        self.values: dict[str, list[tuple[int, Value]]] = {}  # of a name: by round
        self.loaded: dict[tuple[int, int, str], Value] = {}
        self.stores = 0

    def fresh(self, bits: int) -> Any:
        Run.fresh_count += 1
        return z3.BitVec(f"any{Run.fresh_count}", bits)

    def any_of(self, of: Type) -> Value:
        if of.kind in ("struct", "packed"):
            return [self.any_of(part) for part in of.parts]
        return None if of.kind == "void" else self.fresh(of.bits if of.kind == "int" else WIDE)

    # --- the graph: a node is a block in a round; each way back to an earlier block begins a round

    def function(self, lines: list[str], arguments: list[Value]) -> Outcome:
        blocks: dict[str, list[str]] = {}
        current = str(len(arguments))
        for line in lines[1:-1]:
            label = re.match(r'("[^"]*"|[\w.$-]+):', line)
            if label:
                current = label[1].strip('"')
            elif line.strip():
                blocks.setdefault(current, []).append(line.strip().split(", !")[0])
        parameters = re.findall(r"(%[\w.]+)(?=,|\))", lines[0][lines[0].index("(") :])
        for name, value in zip(parameters, arguments, strict=False):
            self.values[name] = [(0, value)]
        entry = next(iter(blocks))
        order, back = self.ordered(blocks, entry)
        nodes: dict[tuple[int, int], list[tuple[str, int, Any]]] = {(0, 0): [("", 0, z3.BoolVal(True))]}
        waiting = [(0, 0)]
        names = list(order)
        results: list[tuple[Any, Value]] = []
        unfinished: list[Any] = []
        while waiting:
            node = heapq.heappop(waiting)
            rounds, name = node[0], names[node[1]]
            ways = nodes[node]
            when = z3.simplify(z3.Or([way[2] for way in ways]))
            for to, condition in self.block(blocks[name], rounds, ways, when, results):
                after = rounds + ((name, to) in back)
                condition = z3.simplify(condition)
                if z3.is_false(condition):
                    continue
                if after > rounds and not self.possible(condition):
                    continue
                if after > MOST_ROUNDS:
                    unfinished.append(condition)
                    continue
                key = (after, order[to])
                if key not in nodes:
                    nodes[key] = []
                    heapq.heappush(waiting, key)
                nodes[key].append((name, rounds, condition))
        value = self.joined(results)
        return Outcome(value, self.events, z3.Or(unfinished) if unfinished else z3.BoolVal(False))

    def possible(self, condition: Any) -> bool:
        solver = z3.SolverFor("QF_BV")
        solver.add(self.given, condition, *defined(condition))
        return bool(solver.check() != z3.unsat)

    def ordered(self, blocks: dict[str, list[str]], entry: str) -> tuple[dict[str, int], set[tuple[str, str]]]:
        done: list[str] = []
        back: set[tuple[str, str]] = set()
        path: set[str] = set()

        def walk(name: str) -> None:
            path.add(name)
            for to in re.findall(r'label %("[^"]*"|[\w.$-]+)', " ".join(blocks[name])):
                to = to.strip('"')
                if to in path:
                    back.add((name, to))
                elif to not in done:
                    walk(to)
            path.remove(name)
            done.append(name)

        walk(entry)
        return {name: i for i, name in enumerate(reversed(done))}, back

    def joined(self, choices: list[tuple[Any, Value]]) -> Value:
        """One of the values, by the first condition that holds; the last if none of the others does."""
        if not choices:
            return None
        result = choices[-1][1]
        for condition, value in reversed(choices[:-1]):
            result = self.either(condition, value, result)
        return result

    def either(self, condition: Any, one: Value, other: Value) -> Value:
        if one is None or one is other:
            return other
        if isinstance(one, list):
            return [self.either(condition, a, b) for a, b in zip(one, other, strict=True)]
        return z3.simplify(z3.If(condition, self.plain(one), self.plain(other)))

    # --- a block

    def block(
        self,
        lines: list[str],
        rounds: int,
        ways: list[tuple[str, int, Any]],
        when: Any,
        results: list[tuple[Any, Value]],
    ) -> list[tuple[str, Any]]:
        phis: list[tuple[str, Value]] = []
        for line in lines:
            tokens = Tokens(line)
            name = ""
            if len(tokens.all) > 1 and tokens.all[1] == "=":
                name = tokens.next()
                tokens.next()
            while tokens.peek() in QUALIFIERS:
                tokens.next()
            code = tokens.next()
            if code == "phi":
                phis.append((name, self.phi(tokens, ways)))
                continue
            for of_phi, value in phis:
                self.set(of_phi, rounds, value)
            phis = []
            if code == "br":
                return self.branch(tokens, rounds, when)
            if code == "switch":
                return self.switch(tokens, rounds, when)
            if code == "ret":
                of = self.m.type(tokens)
                results.append((when, None if of.kind == "void" else self.operand(of, tokens, rounds)))
                return []
            if code == "unreachable":
                return []
            value = self.instruction(code, tokens, rounds, when)
            if name:
                self.set(name, rounds, value)
        raise ValueError("a block without an end")

    def set(self, name: str, rounds: int, value: Value) -> None:
        if z3.is_expr(value):
            value = z3.simplify(value)
        self.values.setdefault(name, []).append((rounds, value))

    def phi(self, tokens: Tokens, ways: list[tuple[str, int, Any]]) -> Value:
        of = self.m.type(tokens)
        sources: dict[str, int] = {}
        while tokens.take("["):
            start = tokens.at
            while tokens.peek() != "]":
                if tokens.peek().startswith("%") and tokens.all[tokens.at + 1] == "]":
                    sources[tokens.peek()[1:].strip('"')] = start
                tokens.next()
            tokens.next()
            tokens.take(",")
        choices = []
        for name, rounds, condition in ways:
            tokens.at = sources[name]
            choices.append((condition, self.operand(of, tokens, rounds)))
        return self.joined(choices)

    def branch(self, tokens: Tokens, rounds: int, when: Any) -> list[tuple[str, Any]]:
        of = self.m.type(tokens)
        if of.kind == "void":
            return [(tokens.next()[1:].strip('"'), when)]
        condition = self.plain(self.operand(of, tokens, rounds)) == 1
        tokens.take(",")
        tokens.next()
        yes = tokens.next()[1:].strip('"')
        tokens.take(",")
        tokens.next()
        no = tokens.next()[1:].strip('"')
        return [(yes, z3.And(when, condition)), (no, z3.And(when, z3.Not(condition)))]

    def switch(self, tokens: Tokens, rounds: int, when: Any) -> list[tuple[str, Any]]:
        value = self.plain(self.operand(self.m.type(tokens), tokens, rounds))
        tokens.take(",")
        tokens.next()
        otherwise = tokens.next()[1:].strip('"')
        tokens.need("[")
        out: list[tuple[str, Any]] = []
        cases: list[Any] = []
        while not tokens.take("]"):
            case = value == self.operand(self.m.type(tokens), tokens, rounds)
            tokens.take(",")
            tokens.next()
            out.append((tokens.next()[1:].strip('"'), z3.And(when, case)))
            cases.append(case)
        return [*out, (otherwise, z3.And(when, z3.Not(z3.Or(cases))))]

    # --- operands

    def operand(self, of: Type, tokens: Tokens, rounds: int) -> Value:
        word = tokens.next()
        bits = of.bits if of.kind == "int" else WIDE
        if word.startswith("%"):
            return next(value for made, value in reversed(self.values[word]) if made <= rounds)
        if word.startswith("@"):
            name = word[1:].strip('"')
            return Pointer(name, 0) if name in self.tables else z3.BitVec(word, WIDE)
        if word in ("true", "false"):
            return z3.BitVecVal(word == "true", 1)
        if word in ("null", "zeroinitializer") and of.kind in ("int", "pointer"):
            return z3.BitVecVal(0, bits)
        if word in ("undef", "poison", "zeroinitializer"):
            return self.any_of(of)
        if word == "getelementptr":
            tokens.take("inbounds")
            tokens.need("(")
            value = self.address(tokens, rounds)
            tokens.need(")")
            return value
        if word.startswith("!"):  # metadata: no value depends on it
            return z3.BitVecVal(0, bits)
        if word in ATTRIBUTES:
            raise ValueError(f"attribute {word}")
        if word in ("bitcast", "inttoptr", "ptrtoint"):
            tokens.need("(")
            value = self.operand(self.m.type(tokens), tokens, rounds)
            tokens.need("to")
            self.m.type(tokens)
            tokens.need(")")
            return value
        return z3.BitVecVal(int(word), bits)

    def plain(self, value: Value) -> Any:
        """As bits, also an address of a table."""
        if not isinstance(value, Pointer):
            return value
        at = z3.BitVec("@" + value.table, WIDE) + value.offset
        return at if value.index is None else at + value.index * value.stride + value.inner

    def address(self, tokens: Tokens, rounds: int) -> Value:
        of = self.m.type(tokens)
        tokens.need(",")
        base = self.operand(self.m.type(tokens), tokens, rounds)
        first = True
        while tokens.take(","):
            tokens.take("inrange")
            kind = self.m.type(tokens)
            index = self.plain(self.operand(kind, tokens, rounds))
            if kind.bits < WIDE:
                index = z3.SignExt(WIDE - kind.bits, index)
            index = z3.simplify(index)
            if first:
                base, first = self.moved(base, index, self.m.size(of), 0), False
            elif of.kind == "array":
                of, count = of.parts[0], of.count
                base = self.moved(base, index, self.m.size(of), count)
            else:
                number = index.as_long()
                base = self.moved(base, z3.BitVecVal(1, WIDE), self.m.offsets(of)[number], 0)
                of = of.parts[number]
        return base

    def moved(self, base: Value, index: Any, stride: int, count: int) -> Value:
        if not isinstance(base, Pointer):
            return z3.simplify(base + index * stride)
        if z3.is_bv_value(index):
            step = index.as_signed_long() * stride
            if base.index is None:
                return Pointer(base.table, base.offset + step)
            return Pointer(base.table, base.offset, base.index, base.stride, base.count, base.inner + step)
        if base.index is not None or count == 0:
            raise ValueError("two indices that are not constant")
        return Pointer(base.table, base.offset, index, stride, count)

    # --- instructions

    def instruction(self, code: str, tokens: Tokens, rounds: int, when: Any) -> Value:
        while tokens.peek() in QUALIFIERS:
            tokens.next()
        if code == "getelementptr":
            return self.address(tokens, rounds)
        if code in ("bitcast", "inttoptr", "ptrtoint", "freeze", "zext", "sext", "trunc"):
            value = self.operand(self.m.type(tokens), tokens, rounds)
            if code in ("bitcast", "freeze"):
                return value
            tokens.need("to")
            to = self.m.type(tokens)
            value, bits = self.plain(value), to.bits if to.kind == "int" else WIDE
            if bits <= value.size():
                return z3.Extract(bits - 1, 0, value)
            return (z3.SignExt if code == "sext" else z3.ZeroExt)(bits - value.size(), value)
        if code == "icmp":
            how = tokens.next()
            of = self.m.type(tokens)
            one = self.plain(self.operand(of, tokens, rounds))
            tokens.need(",")
            other = self.plain(self.operand(of, tokens, rounds))
            return z3.If(COMPARE[how](one, other), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        if code == "select":
            condition = self.plain(self.operand(self.m.type(tokens), tokens, rounds)) == 1
            tokens.need(",")
            one = self.operand(self.m.type(tokens), tokens, rounds)
            tokens.need(",")
            return self.either(condition, one, self.operand(self.m.type(tokens), tokens, rounds))
        if code in ARITHMETIC or code in ("shl", "lshr", "ashr"):
            of = self.m.type(tokens)
            one = self.plain(self.operand(of, tokens, rounds))
            tokens.need(",")
            other = self.plain(self.operand(of, tokens, rounds))
            if code in ("udiv", "urem") and z3.is_bv_value(other) and other.as_long() != 0:
                return self.divided(one, other.as_long())[code == "urem"]
            if code in ARITHMETIC:
                return ARITHMETIC[code](one, other)
            shifted = {"shl": one << other, "lshr": z3.LShR(one, other), "ashr": one >> other}[code]
            return z3.If(z3.ULT(other, of.bits), shifted, self.fresh(of.bits))
        if code == "load":
            return self.load(tokens, rounds, when)
        if code == "store":
            value = self.plain(self.operand(self.m.type(tokens), tokens, rounds))
            tokens.need(",")
            at = self.plain(self.operand(self.m.type(tokens), tokens, rounds))
            self.stores += 1
            self.events.append(Event("store", when, at=at, value=value))
            return None
        if code == "fence":
            return None
        if code == "alloca":
            return self.fresh(WIDE)
        if code == "extractvalue":
            value = self.operand(self.m.type(tokens), tokens, rounds)
            while tokens.take(","):
                value = value[int(tokens.next())]
            return value
        if code == "call":
            return self.call(tokens, rounds, when)
        raise ValueError(f"instruction {code}")

    def divided(self, one: Any, by: int) -> tuple[Any, Any]:
        """Quotient and remainder as what they are known by, which z3 finds easier than a division."""
        bits = one.size()
        quotient, rest = self.fresh(bits), self.fresh(bits)
        most = (2**bits - 1) // by
        meaning = z3.And(one == quotient * by + rest, z3.ULT(rest, by), z3.ULE(rest, one), z3.ULE(quotient, most))
        DEFINED[quotient.decl().name()] = DEFINED[rest.decl().name()] = meaning
        return quotient, rest

    def load(self, tokens: Tokens, rounds: int, when: Any) -> Value:
        of = self.m.type(tokens)
        tokens.need(",")
        at = self.operand(self.m.type(tokens), tokens, rounds)
        size = self.m.size(of)
        if isinstance(at, Pointer):
            return self.known(at, size, when)
        at = z3.simplify(at)
        key = (self.stores, size, at.sexpr())  # what was not written since is what it was
        if key not in self.loaded:
            self.loaded[key] = self.any_of(of)
        value = self.loaded[key]
        self.events.append(Event("load", when, at=at, value=value))
        return value

    def known(self, at: Pointer, size: int, when: Any) -> Any:
        """From a table: an element of an array, of which runs are alike, is found as in a tree."""
        contents = self.m.table(at.table)

        def number(index: int) -> int:
            begin = at.offset + index * at.stride + at.inner
            return int.from_bytes(contents[begin : begin + size], "little")

        if at.index is None:
            return z3.BitVecVal(number(0), size * 8)
        self.events.append(Event("table", when, at.table, at=at.index, value=at.count))
        begins = [i for i in range(at.count) if i == 0 or number(i) != number(i - 1)]

        def chosen(low: int, high: int) -> Any:
            if high - low == 1:
                return z3.BitVecVal(number(begins[low]), size * 8)
            middle = (low + high) // 2
            return z3.If(z3.ULT(at.index, begins[middle]), chosen(low, middle), chosen(middle, high))

        return chosen(0, len(begins))

    def call(self, tokens: Tokens, rounds: int, when: Any) -> Value:
        self.skip_attributes(tokens)
        of = self.m.type(tokens)
        name = tokens.next()
        while not name.startswith("@") and name != "asm":
            name = tokens.next()
        if name == "asm":
            return self.any_of(of)
        name = name[1:].strip('"')
        tokens.need("(")
        arguments: list[Value] = []
        while not tokens.take(")"):
            kind = self.m.type(tokens)
            self.skip_attributes(tokens)
            arguments.append(self.plain(self.operand(kind, tokens, rounds)))
            tokens.take(",")
        known = self.intrinsic(name, arguments)
        if known is not None:
            return known
        value = self.any_of(of)
        if not name.startswith(("llvm.lifetime", "llvm.assume", "llvm.prefetch", "llvm.experimental")):
            self.stores += 1
            self.events.append(Event("call", when, name, value=value, arguments=arguments))
        return value

    def skip_attributes(self, tokens: Tokens) -> None:
        while tokens.peek() in ATTRIBUTES:
            word = tokens.next()
            if tokens.take("("):  # of a type, or a number
                depth = 1
                while depth != 0:
                    inner = tokens.next()
                    depth += (inner == "(") - (inner == ")")
            elif word == "align":
                tokens.next()

    def intrinsic(self, name: str, of: list[Any]) -> Value:
        if name.startswith(("llvm.umul.with.overflow", "llvm.uadd.with.overflow")):
            n = of[0].size()
            one, other = z3.ZeroExt(n, of[0]), z3.ZeroExt(n, of[1])
            wide = one * other if "umul" in name else one + other
            high = z3.Extract(2 * n - 1, n, wide)
            return [z3.Extract(n - 1, 0, wide), z3.If(high != 0, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))]
        if name.startswith(("llvm.ctlz", "llvm.cttz")):
            n = of[0].size()
            found = z3.If(of[1] == 1, self.fresh(n), z3.BitVecVal(n, n))
            for bit in range(n) if "ctlz" in name else reversed(range(n)):
                zeroes = n - 1 - bit if "ctlz" in name else bit
                found = z3.If(z3.Extract(bit, bit, of[0]) == 1, z3.BitVecVal(zeroes, n), found)
            return found
        if name.startswith("llvm.ctpop"):
            n = of[0].size()
            few = n.bit_length()
            return z3.ZeroExt(n - few, z3.Sum([z3.ZeroExt(few - 1, z3.Extract(bit, bit, of[0])) for bit in range(n)]))
        if name.startswith(("llvm.umin", "llvm.umax")):
            return z3.If(z3.ULT(of[0], of[1]) if "umin" in name else z3.UGT(of[0], of[1]), of[0], of[1])
        return None


DEFINED: dict[str, Any] = {}  # what a name in an expression stands for


def defined(*expressions: Any) -> list[Any]:
    """What defines the names that these expressions have."""
    seen: set[int] = set()
    found: dict[int, Any] = {}
    waiting = list(expressions)
    while waiting:
        at = waiting.pop()
        if at.get_id() in seen:
            continue
        seen.add(at.get_id())
        if at.num_args() == 0 and z3.is_const(at) and at.decl().name() in DEFINED:
            meaning = DEFINED[at.decl().name()]
            found[meaning.get_id()] = meaning
            waiting.append(meaning)
        waiting += at.children()
    return list(found.values())


ATTRIBUTES = {
    "noundef", "nonnull", "zeroext", "signext", "align", "dereferenceable", "dereferenceable_or_null", "noalias",
    "nocapture", "readonly", "writeonly", "readnone", "returned", "fastcc", "immarg", "byval", "sret",
}  # fmt: skip
COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "ult": z3.ULT, "ule": z3.ULE, "ugt": z3.UGT, "uge": z3.UGE,
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
}  # fmt: skip
ARITHMETIC = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "udiv": z3.UDiv, "urem": z3.URem, "sdiv": lambda a, b: a / b,
    "srem": z3.SRem,
}  # fmt: skip
