#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory comes back, whatever the threads, bursts, blocks and circumstances, and whichever blocks live on: all cells of
the matrix of one line.

matrix.py CELL-PROGRAM REFUSE-PROGRAM LIBRARY|- [--survivors] [--share K/N] [--only WORD ...] [--print]
                                                                                     ("-": the C library)

Cells sleep for most of their time, so many run at once. Prints every cell that is above its bound, and fails then. With
the C library's own malloc 48 of the 90 cells of the default circumstance are above 36 MiB, because one cached block at the
top keeps all.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import subprocess
import sys

THREADS = ("none", "helper", "joined", "parked", "ended", "busy")
BURSTS = (1, 2, 10)
BLOCKS = ("100", "1000", "10000", "1M", "mixed")
CIRCUMSTANCES = ("default", "no-background", "no-membarrier", "no-clone")
BURST_MIB = 48

# With --survivors. The lines of which no pages go keep what survivors hold open.
SURVIVORS = ("thousandth", "twentieth", "quarter", "first", "last")
OF_SURVIVORS = ("none", "helper", "parked", "ended", "busy")
SIZES = ("64", "512", "2048", "32768", "mixed")
NEVER_DISCARD = ("hz3", "hz3-fast", "hz7", "secure")

BOUND_KIB = 4 * 1024
# Without a purger growth pays for returning everything twice, and time for 64 MB/s (box/retain): of ten bursts in a row
# eight are paid for 6 s after the first, and the last one stays until the program works on. A cell sleeps for 2 s and works
# for 6. hz7 and hz8 return it whatever it costs.
PAYS = ("hz7", "hz8")
# One thread returns pages between blocks at once while at most one slot in eight is in use, else while it works on. A
# little stays cached, free in spans, and dirty.
ALONE_KIB = 8 * 1024
# Threads that never cross again keep what they freed last for other owners, where nobody can take it from them: as
# much as doc/limits.md says, 24 MiB as a rule, 35 seen. (The C library: 43 to 56 MiB, of blocks of 10,000 bytes and
# more 1 to 5.)
OWNED_LINES = ("hz3", "hz3-fast", "hz4", "hz5", "hz6", "hz8")
OWNED_PARKED_KIB = 40 * 1024
# A thread that never crosses again keeps what waits in its rings, where nobody can take it from it, and spans around that:
# up to 2 MiB each.
SECURE_PARKED_KIB = 12 * 1024


def bound_of(line, cell):
    threads, _, _, circumstance, survivors = cell
    if threads == "none" and survivors != "none":
        return ALONE_KIB
    left_alone = threads in ("parked", "ended") and circumstance != "default"
    if line == "secure" and left_alone:
        return SECURE_PARKED_KIB
    return OWNED_PARKED_KIB if line in OWNED_LINES and left_alone else BOUND_KIB


def works(line, cell):
    threads, bursts, _, circumstance, survivors = cell
    alone = threads == "none" or circumstance in ("no-background", "no-clone")
    return (alone and bursts == 10 and line not in PAYS) or (threads == "none" and survivors == "quarter")


def run(program, library, refuse, cell, bound, end):
    threads, bursts, blocks, circumstance, survivors = cell
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HZ_") and k != "LD_PRELOAD"}
    if circumstance == "no-background":
        environment["HZ_BACKGROUND"] = "0"
    command = [program, threads, str(bursts), blocks, circumstance, survivors, str(BURST_MIB), str(bound), end]
    if library != "-":
        command = ["env", f"LD_PRELOAD={library}", *command]
    if circumstance == "no-membarrier":
        command = [refuse, "membarrier", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
    left, _, _, _, live = done.stdout.split()
    return int(left) - int(live) * 11 // 10, done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("refuse")
    parser.add_argument("library")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--share", default="1/1", help="the Kth of N parts, each of which has every value of every axis")
    options = parser.parse_args()
    line = os.environ.get("HZ_TEST_LINE", "hakozuna")
    if options.library != "-":  # one that is not there would have the C library measured
        options.library = str(pathlib.Path(options.library).resolve(strict=True))
    part, parts = map(int, options.share.split("/"))
    axes = (THREADS, BURSTS, BLOCKS, CIRCUMSTANCES, ("none",))
    if options.survivors:
        axes = (OF_SURVIVORS, (1,), SIZES, ("default",), SURVIVORS)
        if line in NEVER_DISCARD:
            print(f"{line} gives no pages between blocks back")
            return 77
    cells = [c for c in itertools.product(*axes)
             if all(w in map(str, c) for w in options.only)
             and sum(axis.index(value) for axis, value in zip(axes, c)) % parts == part % parts]
    if not cells:
        sys.exit("no such cells")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(run, options.program, options.library, options.refuse, c, bound_of(line, c),
                            "works" if works(line, c) else "sleeps") for c in cells]
        for cell, job in zip(cells, jobs):
            left, text = job.result()
            wrong = left is None or left > bound_of(line, cell)
            bad += wrong
            if wrong or options.print:
                print(f"{'ABOVE' if wrong else 'ok':6}{' '.join(map(str, cell)):45}{text}", flush=True)
    print(f"{len(cells)} cells, {bad} above their bound")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
