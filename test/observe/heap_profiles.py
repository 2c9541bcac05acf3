# SPDX-License-Identifier: Apache-2.0
"""Heap profiles that are made up, for the tests of `hz prof`: of any size and shape, and of nothing that ever ran."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hakozuna_observe.profile import BUCKETS, Code, Figures, Profile, Site

LIBRARY = "/usr/lib/libmade-up.so"  # which is nowhere, so that names in it are offsets
BASE = 0x7F0000000000


def code(start: int, end: int, path: str) -> Code:
    """A mapping from the beginning of a file."""
    return Code(start, end, 0, path, f"{start:x}-{end:x} r-xp 00000000 00:00 0 {path}".rstrip())


def figures(live: int, allocated: int | None = None, samples: int = 100, size: int = 64, freed: int = 0) -> Figures:
    """Bytes in blocks of that size; the peak is what is allocated."""
    whole = max(live, allocated or 0)
    times = [0] * BUCKETS
    times[12] = freed
    return Figures(live // size, live, whole // size, whole, whole // size, whole, samples, freed, times)


def profile(sites: Sequence[tuple[tuple[int, ...], Figures]], **changes: object) -> Profile:
    """Of a process with one library, in which the stacks lie."""
    values: dict[str, object] = {
        "pid": 4711,
        "program": "/usr/bin/made-up",
        "name": "made-up",
        "line": "hakozuna",
        "release": "0.1.0",
        "written": 1_795_000_000,
        "uptime": 65_000_000,
        "interval": 65536,
        "dropped": 0,
        "sites": [Site(stack, known) for stack, known in sites],
        "mappings": [code(BASE, BASE + (1 << 24), LIBRARY)],
    }
    return Profile(**(values | changes))  # type: ignore[arg-type]


def many(count: int, depth: Callable[[random.Random], int], seed: int = 1) -> Profile:
    """So many sites, whose stacks are a tree as those of programs are: much in common near main."""
    chance = random.Random(seed)
    sites = []
    for number in range(count):
        frames = depth(chance)
        kind, stack = number, []
        for level in range(frames):
            stack.append(BASE + 16 * (1 + (kind * 64 + frames - level) % (1 << 19)))
            kind //= 3
        live = int(chance.paretovariate(1.1) * 1000)
        sites.append((tuple(stack), figures(live, 2 * live, samples=10, freed=5)))
    return profile(sites)
