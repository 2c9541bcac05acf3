# SPDX-License-Identifier: Apache-2.0
#
# litmus.py FILES...: whether what a protocol forbids is forbidden by Arm's memory model. Each file is one protocol of
# doc/protocols.md, cut down to the words that two threads share. Called by CTest; a second or less.
#
#   init      x=1 y=2                  what words hold at first; all others 0
#   thread    NAME                     its steps follow, one a line
#     r = x   r = x.acq                load; with acquire
#     x = 1   x.rel = r                store; with release
#     r = swap x 1                     exchange, acquire and release
#     if r == 1                        the steps that follow are done only then
#     membarrier                       every other thread passes a full barrier between two of its steps
#   forbidden NAME.r=1 NAME.r=0 …      must not be the registers' values at the end
#
# A step, or .acq, .rel, with a "!" behind it is what the protocol relies upon: without it, each taken away alone, the
# end must be possible; a swap becomes a load and a store. So every file shows that the check can fail.
#
# The model is the axiomatic one of the Arm Architecture Reference Manual (B2.3) for these instructions: an execution says
# which store each load reads, and in which order stores of a word take place; it is possible if each word is coherent
# and "ordered before" has no cycle. A compiler keeps the order of steps: our hot paths have compiler fences for that. For a
# membarrier every place in the other threads is tried.
import itertools
import re
import sys
from collections import defaultdict
from pathlib import Path


def parse(text):
    init, threads, forbidden = {}, {}, {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "init":
            init = {name: int(value) for name, value in (word.split("=") for word in words[1:])}
        elif words[0] == "thread":
            steps = threads[words[1]] = []
        elif words[0] == "forbidden":
            forbidden = {name: int(value) for name, value in (word.split("=") for word in words[1:])}
        else:
            steps.append(" ".join(words))
    return init, threads, forbidden


def weakened(threads):
    """(What was taken away, the threads without it), for each mark."""
    for name, steps in threads.items():
        for number, step in enumerate(steps):
            for mark in re.finditer(r"(\.acq|\.rel)?!", step):
                rest = step[:mark.start()] + step[mark.end():]
                if mark[1]:
                    instead = [rest]
                elif swap := re.fullmatch(r"(\w+) = swap (\w+) (\w+)", rest.strip()):
                    instead = [f"{swap[1]} = {swap[2]}", f"{swap[2]} = {swap[3]}"]
                else:
                    instead = []
                yield f"{name}: {step}", {**threads, name: steps[:number] + instead + steps[number + 1:]}


class Event:
    def __init__(self, thread, kind, word=None, value=None, ordered=False, needs=()):
        self.thread, self.kind, self.word, self.value = thread, kind, word, value  # kind: R, W, M (membarrier)
        self.ordered = ordered  # a load with acquire, a store with release
        self.needs = set(needs)  # loads of the thread that it depends on, if it is a store


def runs(name, steps, values):
    """What the thread may do, for every value that its loads may read: (events, registers, pairs of a swap)."""
    def go(number, events, registers, sources, conditions, swaps):
        if number == len(steps):
            yield events, registers, swaps
            return
        step = steps[number].replace("!", "").strip()
        rest = (number + 1,)
        if step == "membarrier":
            yield from go(*rest, [*events, Event(name, "M")], registers, sources, conditions, swaps)
        elif match := re.fullmatch(r"if (\w+) == (\d+)", step):
            if registers[match[1]] == int(match[2]):
                yield from go(*rest, events, registers, sources, conditions | sources[match[1]], swaps)
            else:
                yield events, registers, swaps
        elif match := re.fullmatch(r"(\w+) = swap (\w+) (\d+)", step):
            for value in values:
                load = Event(name, "R", match[2], value, True)
                store = Event(name, "W", match[2], int(match[3]), True, conditions)
                yield from go(*rest, [*events, load, store], {**registers, match[1]: value},
                              {**sources, match[1]: {load}}, conditions, [*swaps, (load, store)])
        elif match := re.fullmatch(r"(\w+)(\.rel)? = (\d+)", step):
            store = Event(name, "W", match[1], int(match[3]), bool(match[2]), conditions)
            yield from go(*rest, [*events, store], registers, sources, conditions, swaps)
        elif (match := re.fullmatch(r"(\w+)(\.rel)? = (\w+)", step)) and match[3] in registers:
            store = Event(name, "W", match[1], registers[match[3]], bool(match[2]), conditions | sources[match[3]])
            yield from go(*rest, [*events, store], registers, sources, conditions, swaps)
        elif match := re.fullmatch(r"(\w+) = (\w+)(\.acq)?", step):
            for value in values:
                load = Event(name, "R", match[2], value, bool(match[3]))
                yield from go(*rest, [*events, load], {**registers, match[1]: value},
                              {**sources, match[1]: {load}}, conditions, swaps)
        else:
            raise ValueError(f"{name}: what is '{step}'?")
    return go(0, [], {}, {}, set(), [])


def acyclic(edges):
    after = defaultdict(set)
    for a, b in edges:
        after[a].add(b)
    state = {}

    def walk(at):
        state[at] = 1
        for to in after[at]:
            if state.get(to) == 1 or (to not in state and not walk(to)):
                return False
        state[at] = 2
        return True
    return all(at in state or walk(at) for at in list(after))


def in_order(events):
    """What the instructions of one thread keep of its own order."""
    for (i, a), (j, b) in itertools.combinations(enumerate(events), 2):
        fenced = a.kind == "M" or b.kind == "M"
        acquired = a.kind == "R" and a.ordered
        released = b.kind == "W" and b.ordered
        both = a.kind == "W" and a.ordered and b.kind == "R" and b.ordered
        if fenced or acquired or released or both or (b.kind == "W" and a in b.needs):
            yield a, b


def places(threads):
    """For every membarrier and every other thread, each place where the barrier may meet it."""
    met = [(m, other) for events in threads for m in events if m.kind == "M" for other in threads if other is not events]
    for choice in itertools.product(*(range(len(other) + 1) for _, other in met)):
        edges = []
        for (m, other), place in zip(met, choice, strict=True):
            own = next(events for events in threads if m in events)
            at = own.index(m)
            here = ("met", m, id(other))
            edges += [(a, here) for a in [*own[:at], *other[:place]]] + [(here, b) for b in [*own[at + 1:], *other[place:]]]
        yield edges


def sources(loads, writes, init):
    """Which store each load reads; None: what the word held at first."""
    def of(load):
        found = [w for w in writes if w.word == load.word and w.value == load.value]
        return found + ([None] if init.get(load.word, 0) == load.value else [])
    return itertools.product(*(of(load) for load in loads))


def orders(writes):
    words = sorted({w.word for w in writes})
    for choice in itertools.product(*(itertools.permutations([w for w in writes if w.word == word]) for word in words)):
        yield dict(zip(words, choice, strict=True))


def possible(threads, swaps, init):
    events = [event for thread in threads for event in thread]
    loads = [e for e in events if e.kind == "R"]
    writes = [e for e in events if e.kind == "W"]
    same_word = [(a, b) for t in threads for a, b in itertools.combinations(t, 2) if a.word == b.word and a.word]
    kept = [edge for t in threads for edge in in_order(t)]
    for read in sources(loads, writes, init):
        reads = dict(zip(loads, read, strict=True))
        for order in orders(writes):
            later = [(a, b) for row in order.values() for a, b in itertools.combinations(row, 2)]
            rf = [(w, r) for r, w in reads.items() if w is not None]
            fr = [(r, w) for r, source in reads.items() for w in order.get(r.word, ())
                  if source is None or (source is not w and (source, w) in later)]
            if not acyclic([*same_word, *later, *rf, *fr]):
                continue
            if any((r, w) in fr and (w, store) in later for r, store in swaps for w in writes if w is not store):
                continue
            seen = [(a, b) for a, b in [*later, *rf, *fr] if a.thread != b.thread]
            if any(acyclic([*kept, *seen, *swaps, *met]) for met in places(threads)):
                return True
    return False


def can_end(init, threads, end):
    texts = " ".join(" ".join(steps) for steps in threads.values())
    values = sorted({0, *init.values(), *map(int, re.findall(r"\b\d+\b", texts))})
    for run in itertools.product(*(list(runs(name, steps, values)) for name, steps in threads.items())):
        registers = {f"{name}.{r}": v for name, (_, of, _) in zip(threads, run, strict=True) for r, v in of.items()}
        if all(registers.get(name) == value for name, value in end.items()):
            if possible([events for events, _, _ in run], [pair for _, _, swaps in run for pair in swaps], init):
                return True
    return False


def check(path):
    init, threads, end = parse(path.read_text(encoding="utf-8"))
    faults = []
    if not end:
        faults.append("forbids nothing")
    if can_end(init, threads, end):
        faults.append("the forbidden end is possible")
    weak = list(weakened(threads))
    if not weak:
        faults.append("relies upon nothing")
    faults += [f"not needed: {what}" for what, rest in weak if not can_end(init, rest, end)]
    print(f"{path.stem}: {'; '.join(faults) or f'forbidden; possible without each of {len(weak)}'}")
    return not faults


if __name__ == "__main__":
    results = [check(Path(file)) for file in sys.argv[1:]]
    sys.exit(0 if results and all(results) else 1)
