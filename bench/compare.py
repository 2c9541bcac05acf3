#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares allocators on the lanes: a fresh process per run, contenders interleaved, order rotated every round.

    bench/compare.py --lanes guard_r0,main_r90 --threads 2,16 --out runs.jsonl \\
        --a hz3=build/release/libhakozuna-hz3.so --b glibc --b mimalloc=/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0

--a is judged against every --b. NAME=LIBRARY is preloaded; a name alone is the C library. Each round runs every
contender once and gives one ratio per peer (a's ops/s over the peer's). Every record must show that the library asked
for really served malloc. Dirty runs are printed, and their ratios and numbers refused. The table goes to stdout, every
record to --out.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Settings of the caller's shell that would change one contender behind the table's back.
TUNING_PREFIXES = ("HZ_", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "JE_MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


class CompareError(Exception):
    """What the user is told in one line before the program ends with status 1."""


@dataclasses.dataclass
class Contender:
    name: str
    library: pathlib.Path | None  # None: the C library
    env: dict[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def parse(text):
        name, given, path = text.partition("=")
        library = pathlib.Path(path).resolve() if given else None
        if not name or (library and not library.is_file()):
            raise CompareError(f"{text}: {'no such library' if name else 'a contender needs a name'}")
        return Contender(name, library)

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(TUNING_PREFIXES)}
        if self.library:
            env["LD_PRELOAD"] = str(self.library)
        return env | self.env

    def check(self, record):
        """The probe of the record must name the library that was asked for."""
        served = pathlib.Path(record["allocator_file"]).resolve()
        right = served == self.library if self.library else served.name.startswith("libc.so")
        if not right:
            asked = self.library or "the C library"
            raise CompareError(f"{self.name}: asked for {asked}, but malloc came from {served}")


def run_once(program, contender, lane, threads, options):
    command = [str(program), "--lane", lane, "--threads", str(threads), *options]
    done = subprocess.run(command, env=contender.environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompareError(f"{contender.name}: {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    record = json.loads(done.stdout)
    contender.check(record)
    return record | {"contender": contender.name, "env": contender.env}


def run_cell(run, contenders, pairs, report):
    """All runs of one lane and thread count, as {name: [record of each round]}. `run` measures one contender."""
    records = {c.name: [] for c in contenders}
    for round_number in range(pairs):
        shift = round_number % len(contenders)
        for contender in contenders[shift:] + contenders[:shift]:
            record = run(contender) | {"round": round_number}
            records[contender.name].append(record)
            report(record)
    return records


def quartiles(values):
    """25 %, median, 75 % (of one value: itself three times)."""
    return values * 3 if len(values) == 1 else statistics.quantiles(values, n=4, method="inclusive")


def ratios(ours, theirs):
    """One ratio per round in which neither run was dirty."""
    return [a["ops_per_s"] / b["ops_per_s"] for a, b in zip(ours, theirs) if not (a["dirty"] or b["dirty"])]


def table_row(lane, threads, name, records, first_records, is_first):
    clean = [r for r in records if not r["dirty"]]
    dirty = len(records) - len(clean)
    cells = [lane, str(threads), name]
    if clean:
        cells.append(f"{statistics.median(r['ops_per_s'] for r in clean) / 1e6:.2f}")
        row_ratios = [] if is_first else ratios(first_records, records)
        if row_ratios:
            low, middle, high = quartiles(row_ratios)
            cells.append(f"{middle:.3f} ({low:.3f}..{high:.3f})")
        else:
            cells.append("-" if is_first else "refused")
        for moment, harness in ("peak", 1), ("idle", 1), ("after", 0):
            kib = statistics.median(r[f"rss_{moment}_kib"] - harness * r["harness_kib"] for r in clean)
            cells.append(f"{kib / 1024:.1f}")
    else:
        cells += ["refused"] * 5
    cells.append(f"{dirty} of {len(records)}" if dirty else "0")
    return "| " + " | ".join(cells) + " |"


def table(cells, contenders):
    first = contenders[0].name
    lines = [
        f"| lane | T | allocator | M ops/s | {first} / this: median (p25..p75) "
        "| peak MiB | idle MiB | after MiB | dirty runs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (lane, threads), records in cells.items():
        for contender in contenders:
            name = contender.name
            lines.append(table_row(lane, threads, name, records[name], records[first], name == first))
    return "\n".join(lines)


def read_text(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def conditions(contenders, cells, load_before, args):
    """What a reader needs in order to repeat the table or to doubt it."""
    commit = output_of("git", "rev-parse", "--verify", "-q", "HEAD") or "none"
    changed = " with local changes" if output_of("git", "status", "--porcelain") else ""
    cpu = next((line.partition(":")[2].strip() for line in read_text("/proc/cpuinfo").splitlines()
                if line.startswith("model name")), platform.machine())
    last = {name: records[-1] for cell in cells.values() for name, records in cell.items()}
    runs = [r for cell in cells.values() for records in cell.values() for r in records]
    shapes = sorted({(r["lane"], r["definition"].get("iterations", 0), r["touched"]) for r in runs})
    cpus = len(os.sched_getaffinity(0))
    # Low where others used the machine (the table is then worth little) or where threads waited for locks.
    shares = [r["cpu_seconds"] / r["seconds"] / min(r["threads"], cpus) for r in runs]
    lines = [
        f"- commit: {commit}{changed}",
        f"- CPU: {cpu}, {cpus} usable",
        f"- kernel: {platform.release()}; transparent huge pages: "
        + read_text("/sys/kernel/mm/transparent_hugepage/enabled"),
        f"- program: {last[contenders[0].name]['flags']}; mode {args.mode}; {args.pairs} rounds, "
        "a fresh process per run, order rotated every round",
        "- iterations per thread: " + ", ".join(
            f"{lane} {n}{'' if touched else ' untouched'}" for lane, n, touched in shapes),
        f"- load: {load_before} before, {read_text('/proc/loadavg')} after; CPUs that the runs got, "
        f"as a share of those they could use: median {statistics.median(shares):.2f}, lowest {min(shares):.2f}",
        "- peak and idle are without the harness's own memory; idle: all freed, threads parked, 50 ms later;"
        " after: threads joined, 50 ms later",
    ]
    for contender in contenders:
        path = pathlib.Path(last[contender.name]["allocator_file"]).resolve()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        setting = "".join(f" {k}={v}" for k, v in contender.env.items())
        lines.append(f"- {contender.name}: {path.name} sha256 {digest}{setting}")
    return "\n".join(lines)


def parse_contenders(args):
    contenders = [Contender.parse(text) for text in [args.a, *args.b]]
    by_name = {c.name: c for c in contenders}
    if len(by_name) != len(contenders):
        raise CompareError("two contenders have the same name")
    for text in args.env:
        name, _, setting = text.partition("=")
        key, given, value = setting.partition("=")
        if name not in by_name or not given:
            raise CompareError(f"--env {text}: expected CONTENDER=KEY=VALUE with a contender of this comparison")
        by_name[name].env[key] = value
    return contenders


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", required=True, help="comma-separated lane names")
    parser.add_argument("--threads", required=True, help="comma-separated thread counts")
    parser.add_argument("--pairs", type=positive, default=7, help="rounds, each giving one ratio per peer (7)")
    parser.add_argument("--a", required=True, metavar="NAME[=LIBRARY]", help="the contender to judge")
    parser.add_argument("--b", required=True, action="append", metavar="NAME[=LIBRARY]", help="a peer; may repeat")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=KEY=VALUE",
                        help="a setting of one contender")
    parser.add_argument("--mode", choices=("fair", "upstream"), default="fair")
    parser.add_argument("--iterations", type=positive, help="per thread, instead of the lane's own")
    parser.add_argument("--untouched", action="store_true", help="do not write into the blocks")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="file for the records, one JSON per line")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bench/lane")
    return parser.parse_args(argv)


def compare(args):
    contenders = parse_contenders(args)
    options = ["--mode", args.mode] + ["--untouched"] * args.untouched
    for key in ("iterations", "seed"):
        value = getattr(args, key)
        options += [f"--{key}", str(value)] if value is not None else []
    load_before = read_text("/proc/loadavg")
    cells = {}
    with args.out.open("w", encoding="utf-8") as out:
        def report(record):
            print(json.dumps(record), file=out, flush=True)
            mark = " DIRTY, refused" if record["dirty"] else ""
            print(f"{record['lane']} T={record['threads']} {record['contender']}: {record['ops_per_s'] / 1e6:.2f} "
                  f"M ops/s, {record['fallbacks']} fallbacks{mark}", file=sys.stderr)

        for lane in args.lanes.split(","):
            for threads in map(int, args.threads.split(",")):
                def run(contender, lane=lane, threads=threads):
                    return run_once(args.program, contender, lane, threads, options)

                cells[lane, threads] = run_cell(run, contenders, args.pairs, report)
    print(conditions(contenders, cells, load_before, args), table(cells, contenders), sep="\n\n")


def main():
    try:
        compare(parse_arguments(sys.argv[1:]))
    except (CompareError, OSError, ValueError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
