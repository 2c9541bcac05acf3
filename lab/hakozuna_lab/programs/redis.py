# SPDX-License-Identifier: Apache-2.0
"""redis-server under redis-benchmark, and under memtier_benchmark where that is installed: 20 clients over a socket, 16
requests in flight each. test/preload/redis.sh runs every kind of command once and checks the data; here few kinds run
long, and nothing but their number is checked."""

import csv
import functools
import json
import time
from collections.abc import Callable

from hakozuna_lab import RunError
from hakozuna_lab.programs.program import Job, Program, Record, find, first_line, run_client, served_env
from hakozuna_lab.programs.server import Load, Server, connects, serve

SOCKET = "redis.sock"  # relative to the work folder: a socket's path must be short
KEYS = 200_000
REQUESTS = 2_500_000
# Values of these sizes in turn over the same keys: every write frees a block of one size and takes one of another.
SIZES = (16, 200, 1000, 4000)
SIZES_KEYS = 20_000

# Of as many keys, with values of 16 to 1,200 bytes, nine in ten are deleted at random: in the server itself, so that it
# does nothing else. Its generator of random numbers begins the same each time.
SURVIVORS_KEYS = 400_000
FILL = "for i = 1, ARGV[1] do redis.call('SET', 'key:' .. i, string.rep('x', math.random(16, 1200))) end"
DELETE = "for i = 1, ARGV[1] do if math.random(10) > 1 then redis.call('DEL', 'key:' .. i) end end"


def benchmark(job: Job, tests: str, requests: int, size: int = 100, keys: int = KEYS) -> list[dict[str, str]]:
    rows = run_client(
        [find("redis-benchmark"), "-s", SOCKET, "-P", "16", "-c", "20", "--csv", "-t", tests, "-n", str(requests),
         "-d", str(size), "-r", str(job.count(keys))],
        job.workdir,
    )  # fmt: skip
    found = list(csv.DictReader(rows.splitlines()))
    if len(found) != len(tests.split(",")):
        raise RunError(f"redis-benchmark did not finish {tests}: {rows}")
    return found


def total(rows: list[dict[str, str]], requests: int) -> Load:
    """Of several tests, each of so many requests: all requests in all the time, and the latency of the slowest."""
    seconds = sum(requests / float(row["rps"]) for row in rows)
    latency = {f"p{n}": max(float(row[f"p{n}_latency_ms"]) for row in rows) for n in (50, 95, 99)}
    return Load(requests * len(rows), seconds, latency)


def survivors(job: Job) -> Load:
    """Requests are counted as the server's own calls: all of the keys are set, and nine in ten deleted."""
    keys = job.count(SURVIVORS_KEYS)
    began = time.perf_counter()
    for script in (FILL, DELETE):
        answer = run_client([find("redis-cli"), "-s", SOCKET, "EVAL", script, "0", str(keys)], job.workdir)
        if answer.strip():
            raise RunError(f"redis-cli: {answer.strip()}")
    return Load(keys * 1.9, time.perf_counter() - began)


def load(job: Job) -> Load:
    if job.case == "survivors":
        return survivors(job)
    requests = job.count(REQUESTS)
    if job.case == "set":
        return total(benchmark(job, "set", requests), requests)
    if job.case == "lists":
        return total(benchmark(job, "lpush,lpop", requests // 2), requests // 2)
    if job.case == "mix":
        return total(benchmark(job, "set,get,lpush,lpop", requests // 4), requests // 4)
    share = requests // (2 * len(SIZES))
    rows = [benchmark(job, "set", share, size, SIZES_KEYS)[0] for _ in range(2) for size in SIZES]
    return total(rows, share)


def memtier(job: Job) -> Load:
    """As many writes as reads, of values of 16 to 2,048 bytes."""
    each = job.count(REQUESTS) // 20
    keys = str(job.count(KEYS))
    run_client(
        [find("memtier_benchmark"), "-S", SOCKET, "-t", "2", "-c", "10", "-n", str(each), "--pipeline", "16",
         "--ratio", "1:1", "--key-maximum", keys, "--data-size-range", "16-2048", "--random-data", "--hide-histogram",
         "--print-percentiles", "50,95,99", "--json-out-file", "memtier.json"],
        job.workdir,
    )  # fmt: skip
    text = (job.workdir / "memtier.json").read_text(encoding="utf-8")
    totals = json.loads(text)["ALL STATS"]["Totals"]
    latency = {f"p{n}": float(totals["Percentile Latencies"][f"p{n}.00"]) for n in (50, 95, 99)}
    return Load(each * 20, each * 20 / float(totals["Ops/sec"]), latency)


def server(job: Job) -> Server:
    command = [find("redis-server"), "--port", "0", "--unixsocket", SOCKET, "--save", "", "--daemonize", "no"]
    return Server(command, lambda: connects(job.workdir / SOCKET), served_env(job))


def work(put_load: Callable[[Job], Load], job: Job) -> Record:
    return serve(job, server(job), lambda: put_load(job))


def version() -> str:
    return first_line(find("redis-server"), "--version").split()[2].removeprefix("v=")


REDIS = Program(
    "redis",
    ("set", "lists", "mix", "sizes", "survivors"),
    ("redis-server", "redis-benchmark", "redis-cli"),
    version,
    functools.partial(work, load),
)
MEMTIER = Program("memtier", ("mix",), ("redis-server", "memtier_benchmark"), version, functools.partial(work, memtier))
