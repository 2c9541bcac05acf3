# SPDX-License-Identifier: Apache-2.0
"""Made up for the lab's tests: a program `lane` that says what its environment tells it to, and results."""

import json
import sys
from pathlib import Path
from typing import Any

from hakozuna_lab.store import Cell, Header, Run, Selection, StoredContender

DEFINITION = {"min_size": 16, "max_size": 2048, "iterations": 1000, "remote_percent": 50}
LANES: list[dict[str, Any]] = [
    {"lane": "guard_r50", "family": "ring", "threads": 0, "modes": ["fair", "upstream"], "guard": True},
    {"lane": "main_r50", "family": "ring", "threads": 0, "modes": ["fair", "upstream"], "guard": False},
    {"lane": "main_r90", "family": "ring", "threads": 0, "modes": ["fair"], "guard": False},
    {"lane": "solo", "family": "solo", "threads": 1, "modes": ["fair"], "guard": False},
]
LISTED = [lane | {"definition": DEFINITION if lane["family"] == "ring" else {"rounds": 5}} for lane in LANES]

# Understands the options of the real one; FAKE holds the fields of the record that shall be different, FAKE_EXIT how to
# end, FAKE_SAYS what goes to stderr, FAKE_SLEEP how long it takes.
PROGRAM = """#!{python}
import argparse, json, os, signal, sys, time
lanes = json.loads({lanes!r})
parser = argparse.ArgumentParser()
for name, kind in (("lane", str), ("threads", int), ("mode", str), ("iterations", int), ("remote", int), ("seed", int)):
    parser.add_argument("--" + name, type=kind)
parser.add_argument("--untouched", action="store_true")
parser.add_argument("--written", action="store_true")
parser.add_argument("--list", action="store_true")
args = parser.parse_args()
if args.list:
    print(json.dumps(lanes))
    sys.exit()
if "FAKE_SAYS" in os.environ:
    print(os.environ["FAKE_SAYS"], file=sys.stderr)
if int(os.environ.get("FAKE_EXIT", "0")) < 0:
    os.kill(os.getpid(), -int(os.environ["FAKE_EXIT"]))
if "FAKE_EXIT" in os.environ:
    sys.exit(int(os.environ["FAKE_EXIT"]))
time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
lane = next(lane for lane in lanes if lane["lane"] == args.lane)
definition = dict(lane["definition"])
for key, value in (("iterations", args.iterations), ("remote_percent", args.remote)):
    if value is not None and key in definition:
        definition[key] = value
library = os.environ.get("LD_PRELOAD", {libc!r})
record = dict(lane=lane["lane"], family=lane["family"], mode=args.mode, threads=lane["threads"] or args.threads,
              definition=definition, touched=not args.untouched, written=args.written, seed=args.seed or 1,
              ops=2000, seconds=0.001, ops_per_s=2e6, rss_peak_kib=5120, rss_idle_kib=3072, rss_after_kib=1536,
              harness_kib=1024, dirty=False,
              moments=["empty", "start", "end", "idle", "after"],
              allocator_file=library, flags="made up", retain=os.environ.get("HZ_RETAIN"))
record.update(json.loads(os.environ.get("FAKE", "{{}}")))
print(json.dumps(record))
"""


def fake_lane(folder: Path) -> Path:
    """The program. Libraries preloaded into it may be empty files: the loader says so and goes on without."""
    libc = folder / "libc.so.6"
    libc.write_bytes(b"")
    program = folder / "lane"
    text = PROGRAM.format(python=sys.executable, lanes=json.dumps(LISTED), libc=str(libc))
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


def record(mops: float, **changes: Any) -> dict[str, Any]:
    return {
        "ops_per_s": mops * 1e6,
        "dirty": False,
        "rss_peak_kib": 5120,
        "rss_idle_kib": 3072,
        "rss_after_kib": 1536,
        "harness_kib": 1024,
    } | changes


def run(
    cell: Cell, contender: str, number: int, made: dict[str, Any], attempt: int = 1, disturbed: bool = False
) -> Run:
    return Run(cell.kind, cell.id, contender, number, attempt, 0.5 if disturbed else 0.0, disturbed, made)


def header(names: list[str], cells: list[Cell], runs: int = 7) -> Header:
    contenders = [StoredContender(name, f"/lib{name}.so", "e3b0c442", {}, "") for name in names]
    lanes = [cell.name for cell in cells]
    return Header(
        id="one",
        commit="c0ffee",
        changed=False,
        cpu="a CPU",
        cpus=2,
        kernel="6.1",
        thp="always",
        governor="unknown",
        load_before="0.00",
        flags="-O2",
        program_sha256="00",
        contenders=contenders,
        selection=Selection(lanes, [2], ["fair"], runs, names[0], cells),
        command="hz bench",
    )
