# SPDX-License-Identifier: Apache-2.0
#
# probes_test.py PROGRAM LIBRARY: what a debugger sees at the probes while PROGRAM (probed.c) runs on LIBRARY, beside
# what the program says that it did. gdb finds the probes and reads their numbers by the notes alone, as perf and
# bpftrace do. HZ_TEST_LINE names the line. Exit code 77: gdb is not to be had, or may not trace here (a failure under
# CI=true).
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

MIB = 1 << 20
SOFT, HARD = 1, 2
INTERIOR = 4  # E04
ENVIRONMENT = {
    "HZ_ON_INVALID": "report",
    "HZ_BACKGROUND": "0",  # nobody but the program moves memory
    "HZ_LIMIT_SOFT": "64M",
    "HZ_LIMIT_HARD": "512M",
}


def skip(reason):
    if os.environ.get("CI") == "true":
        sys.exit(f"FAILED: {reason}")
    print(f"skipped: {reason}")
    sys.exit(77)


def run(program, library):
    """What gdb saw, by probe, and the program's own lines, by their first word."""
    settings = [f"set environment {name} {value}" for name, value in {**ENVIRONMENT, "LD_PRELOAD": library}.items()]
    commands = [
        "set startup-with-shell off",
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "set width 0",
        *settings,
        f"source {Path(__file__).with_name('probes_in_gdb.py')}",
    ]
    arguments = [part for command in commands for part in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-nx", "-q", "-batch", *arguments, program], check=False, capture_output=True, text=True, timeout=120
    )
    if "Operation not permitted" in done.stderr:
        skip("no program may be traced here")
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines or not lines[-1].startswith("["):
        sys.exit(f"FAILED: gdb\n{done.stdout}{done.stderr}")
    hits = {}
    for name, *numbers in json.loads(lines[-1]):
        hits.setdefault(name, []).append(tuple(numbers))
    words = [line.split() for line in lines]
    said = {}
    for word in words:
        if word and word[0] in ("huge", "small", "inside", "soft", "hard", "spans"):
            said.setdefault(word[0], []).append([int(number) for number in word[1:]])
    missing = {"huge", "small", "inside", "soft", "hard", "spans"} - set(said)
    if missing:
        sys.exit(f"FAILED: the program did not come to its end: {done.stdout}{done.stderr}")
    return hits, said


def overlap(at, size, events):
    return sum(max(0, min(at + size, begin + length) - max(at, begin)) for begin, length in events)


def faults(hits, said, line):
    acquired, retired = hits.get("span_acquired", []), hits.get("span_retired", [])
    for at, size in said["huge"]:
        begun = [span for span in acquired if span[0] <= at and at + size <= span[0] + span[1] <= at + size + 8 * MIB]
        if not begun:
            yield f"no span_acquired around the huge block at {at:#x}"
        elif not any(span in retired for span in begun):
            yield f"no span_retired for {begun[0][0]:#x}, {begun[0][1]} bytes"
        if overlap(at, size, hits.get("purge", [])) < size:
            yield f"purge does not tell of all of the huge block at {at:#x}"
    huge = len(said["huge"]) + 1  # and the one beyond the soft limit
    for name, events in (("span_acquired", acquired), ("span_retired", retired)):
        found = sum(size >= 8 * MIB for _, size in events)
        if found != huge:
            yield f"{name} tells of {found} huge blocks, there were {huge}"
    counted = dict(zip(("span_acquired", "span_retired"), said["spans"][0], strict=True))
    for name, count in counted.items():
        if len(hits.get(name, [])) != count:
            yield f"{name} was met {len(hits.get(name, []))} times, the heap counted {count}"

    class_bytes, blocks = said["small"][0]
    moves = [hits.get(name, []) for name in ("refill", "flush")]
    # What is usable in a block may be less than its class has.
    class_bytes = min((size for events in moves for size, _ in events if size >= class_bytes), default=class_bytes)
    came, went = (sum(slots for size, slots in events if size == class_bytes) for events in moves)
    if line == "hz7":  # no thread has slots of its own
        if "refill" in hits or "flush" in hits:
            yield "hz7 caches nothing, and tells of refill or flush"
    elif came < blocks or went != came:
        yield f"of {class_bytes} bytes {came} slots came and {went} went, for {blocks} blocks"

    if hits.get("fault", []) != [(INTERIOR, said["inside"][0][0])]:
        yield f"fault: {hits.get('fault')}, the bad pointer was {said['inside']}"
    for which, word, served in ((SOFT, "soft", 1), (HARD, "hard", 0)):
        was_served, size = said[word][0]
        if was_served != served:
            yield f"the block beyond the {word} limit: {was_served}"
        most = size + size // 16 + 8 * MIB  # with what is written down about it
        if not any(limit == which and size <= more <= most for limit, more in hits.get("limit", [])):
            yield f"limit does not tell of {size} bytes beyond the {word} limit: {hits.get('limit')}"
    if any(limit not in (SOFT, HARD) for limit, _ in hits.get("limit", [])):
        yield f"limit: {hits['limit']}"


def main(program, library):
    if shutil.which("gdb") is None:
        skip("gdb is missing")
    hits, said = run(program, library)
    found = list(faults(hits, said, os.environ["HZ_TEST_LINE"]))
    print({name: len(events) for name, events in hits.items()})
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
