# SPDX-License-Identifier: Apache-2.0
"""postgres with pgbench: 4 clients of its bank transactions, of its look-ups, and one session that sorts, hashes, joins
and indexes. The session's statements and the tables are those of test/preload/postgres.sh, which compares the answers;
here each case runs long and alone. Every process of the cluster is served, its making is not measured. Shared buffers
count in every process that touches them, for each allocator alike."""

import os
import pwd
import re
import shutil
import signal
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hakozuna_lab import RunError
from hakozuna_lab.programs.program import PLACES, SHARED, Job, Program, Record, client_env, find, first_line, run_client
from hakozuna_lab.programs.server import Load, Server, serve

# Debian keeps the server's programs of each version in a folder of its own.
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
POSTGRES_PLACES = os.pathsep.join([*map(str, BINARIES[:1]), PLACES])
TRANSACTIONS = {"transactions": 5_000, "lookups": 25_000}  # of each client
CLIENTS = 4
SESSIONS = 5
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "20",
    "max_parallel_workers_per_gather": "2",
    "min_parallel_table_scan_size": "0",
    "autovacuum": "off",
    "log_min_messages": "warning",
}


def tool(name: str) -> str:
    return find(name, POSTGRES_PLACES)


def as_owner(job: Job) -> list[str]:
    """What a command of the cluster begins with: postgres refuses root, so root runs it as another user."""
    if os.getuid() != 0:
        return []
    users = {user.pw_name: user for user in pwd.getpwall()}
    owner = users.get("postgres") or users["nobody"]
    shutil.chown(job.workdir, owner.pw_uid)
    return [find("setpriv"), f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]


def clients_env(job: Job) -> dict[str, str]:
    mine = {name: value for name, value in client_env().items() if not name.startswith("PG")}
    return {**mine, "PGHOST": str(job.workdir), "PGUSER": "tester", "PGDATABASE": "postgres"}


def run(job: Job, *command: str) -> str:
    return run_client([tool(command[0]), *command[1:]], job.workdir, clients_env(job))


def prepare(job: Job) -> None:
    if job.case == "sessions":
        for number in range(job.count(SESSIONS)):
            run(job, "psql", "-X", "-q", "-c", f"CREATE DATABASE session{number}")
    else:
        run(job, "pgbench", "-q", "-i", "-s", "2")


def load(job: Job) -> Load:
    if job.case == "sessions":
        sessions = job.count(SESSIONS)
        began = time.perf_counter()
        for number in range(sessions):
            run(job, "psql", "-X", "-q", "-d", f"session{number}", "-o", "answers", "-f", str(SHARED / "churn.psql"))
        return Load(sessions, time.perf_counter() - began)
    kind = ["-S"] if job.case == "lookups" else []
    each = str(job.count(TRANSACTIONS[job.case]))
    said = run(job, "pgbench", "-n", *kind, "-c", str(CLIENTS), "-j", "2", "-t", each, "--log")
    done, rate = re.search(r"actually processed: (\d+)", said), re.search(r"^tps = ([\d.]+)", said, re.M)
    if not (done and rate):
        raise RunError(f"pgbench said no rate: {said}")
    return Load(int(done[1]), int(done[1]) / float(rate[1]), latencies(job.workdir))


def latencies(folder: Path) -> dict[str, float]:
    """Of pgbench's log, one line per transaction: client, number, microseconds, …"""
    logs = [path.read_text(encoding="utf-8").splitlines() for path in folder.glob("pgbench_log.*")]
    cuts = statistics.quantiles((int(line.split()[2]) / 1000 for log in logs for line in log), n=100)
    return {f"p{n}": cuts[n - 1] for n in (50, 95, 99)}


def cluster(job: Job, settings: Mapping[str, str]) -> tuple[Job, Server]:
    """A fresh one. Its job's library lies where the cluster's user may read it."""
    owner = as_owner(job)
    run_client([*owner, tool("initdb"), "-D", "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
               job.workdir)  # fmt: skip
    if owner and job.contender.library:
        copied = Path(shutil.copy(job.contender.library, job.workdir))
        job = replace(job, contender=replace(job.contender, library=copied))
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    # What is set for the server is not for setpriv: with HZ_CONTROL=1 that would have threads, and glibc ends a process
    # in which one thread alone kept the right to change its groups.
    own = job.contender.env
    server = [find("env"), *(f"{name}={value}" for name, value in own.items()), tool("postgres")]
    command = [*owner, *server, "-D", "data", "-k", str(job.workdir), *words]
    env = {name: value for name, value in job.env.items() if name not in own}
    return job, Server(command, lambda: answers(job), env, signal.SIGINT)


def work(job: Job) -> Record:
    own, server = cluster(job, SETTINGS)
    record = serve(own, server, lambda: load(own), lambda: prepare(own))
    if own.contender.library and Path(record["allocator_file"]) == own.contender.library:
        record["allocator_file"] = str(job.contender.library)
    return record


def answers(job: Job) -> bool:
    return first_line(tool("pg_isready"), "-h", str(job.workdir)).endswith("accepting connections")


POSTGRES = Program(
    "postgres",
    (*TRANSACTIONS, "sessions"),
    ("postgres", "initdb", "pgbench", "psql", "pg_isready", *(["setpriv"] if os.getuid() == 0 else [])),
    lambda: first_line(tool("postgres"), "--version").split()[2],
    work,
    POSTGRES_PLACES,
)
