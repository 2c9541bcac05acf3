# SPDX-License-Identifier: Apache-2.0
"""Made-up results for the tests of the report: a file with sweeps, series, programs, refused and disturbed runs. The
numbers are random, always the same, and mean nothing."""

import random
from pathlib import Path
from typing import Any

from hakozuna_lab.store import Cell, End, Header, Run, Selection, StoredContender, append

NAMES = [
    *("hz3", "hz3-fast", "glibc", "jemalloc-5.3.1", "tcmalloc_minimal", "mimalloc2", "mimalloc3", "mimalloc3+nothp"),
    *("scudo", "snmalloc", "rpmalloc"),
]
ROUNDS = 6
CELLS = [
    *(Cell("lane", lane, 2, "fair") for lane in ("guard_r0", "guard_r50", "guard_r90")),
    *(Cell("lane", "guard_r50", threads, "fair") for threads in (1, 16)),
    Cell("lane", "rss_plateau", 1, "fair"),
    Cell("program", "redis/set"),
]


def contender(name: str) -> StoredContender:
    """Ours by the name of the library, as everywhere."""
    base, _, setting = name.partition("+")
    library = f"/build/libhakozuna-{name}.so" if name.startswith("hz") else f"/usr/lib/lib{base}.so.2"
    digest = f"{random.Random(base).getrandbits(256):064x}"
    return StoredContender(name, library, digest, {"MIMALLOC_ALLOW_THP": "0"} if setting else {}, "2.1")


def header(names: list[str], cells: list[Cell], rounds: int) -> Header:
    selection = Selection([], [], ["fair"], rounds, names[0], cells)
    contenders = [contender(name) for name in names]
    return Header("2026-11-21-made-up", "c0ffee", False, "a made-up CPU", 2, "6.1.0", "madvise", "performance",
                  "0.10 0.05 0.01", "-O2 -g", "00", contenders, selection, "hz bench --quick")  # fmt: skip


def lane_record(cell: Cell, ops_per_s: float, peak: int) -> dict[str, Any]:
    definition: dict[str, Any] = {"min_size": 16, "max_size": 32768 if "main" in cell.name else 2048}
    if "_r" in cell.name:
        definition["remote_percent"] = int(cell.name.rpartition("_r")[2]) if cell.remote is None else cell.remote
    record = {"lane": cell.name, "family": "classic", "threads": cell.threads, "definition": definition, "dirty": False}
    if "remote_percent" in definition:
        record["family"] = "ring"
    if cell.name == "rss_plateau":
        steps = [("allocated", 1.0), ("freed", 0.4)] * 5 + [("end", 0.2)]
        record["rss_series_kib"] = [[f"{name} {i // 2}", int(peak * share)] for i, (name, share) in enumerate(steps)]
    memory = {"rss_peak_kib": peak + 1024, "rss_idle_kib": peak // 3 + 1024, "rss_after_kib": peak // 5}
    return record | {"ops_per_s": ops_per_s, "harness_kib": 1024} | memory


def program_record(cell: Cell, ops_per_s: float, peak: int) -> dict[str, Any]:
    series = [[second / 10, int(peak * min(1.0, second / 30) ** 0.5)] for second in range(51)]
    latency = {"p50": 900 / ops_per_s**0.5, "p99": 4000 / ops_per_s**0.5} if "redis" in cell.name else {}
    return {"program": cell.name, "ops_per_s": ops_per_s, "latency_ms": latency, "rss_peak_kib": peak,
            "rss_idle_kib": peak // 2, "rss_series": series, "load_ended": series[-1][0] / 2}  # fmt: skip


def record(cell: Cell, name: str, round_number: int) -> dict[str, Any]:
    likes, luck = random.Random(cell.id + name), random.Random(f"{cell.id}{name}{round_number}")
    size = 1e8 if cell.kind == "lane" else 1e5 if "redis" in cell.name else 0.2
    share = int(cell.name.rpartition("_r")[2]) if "_r" in cell.name and cell.remote is None else cell.remote or 0
    ops = size * likes.uniform(0.5, 1.5) * luck.uniform(0.97, 1.03) / (1 + share / 20) / max(1, cell.threads / 8)
    peak = int(likes.uniform(8_000, 200_000) * luck.uniform(0.98, 1.02))
    return lane_record(cell, ops, peak) if cell.kind == "lane" else program_record(cell, ops, peak)


def write(path: Path, names: list[str] = NAMES, cells: list[Cell] = CELLS, rounds: int = ROUNDS) -> Path:
    """snmalloc is dirty in one round of the first cell, scudo fails in all of it, rpmalloc was disturbed once."""
    append(path, header(names, cells, rounds))
    for number, cell in enumerate(cells):
        for round_number in range(rounds):
            for name in names:
                made = record(cell, name, round_number)
                disturbed = (number, round_number, name) == (0, 1, "rpmalloc")
                if (number, round_number, name) == (0, 2, "snmalloc"):
                    made["dirty"] = True
                if (number, name) == (0, "scudo"):
                    made = {"failed": "signal 11"}
                if disturbed:
                    append(path, Run(cell.kind, cell.id, name, round_number, 1, 0.3, True, made))
                append(path, Run(cell.kind, cell.id, name, round_number, 1 + disturbed, 0.01, False, made))
    append(path, End("1.90 1.20 0.60", 1))
    return path
