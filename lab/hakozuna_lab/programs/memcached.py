# SPDX-License-Identifier: Apache-2.0
"""memcached with four threads under the twelve clients of test/preload/memcached.py, which check every answer. The test
runs them once; here they come again and again. Python writes the load, so that the server is not always busy: its own
CPU time is in the record. An op is a command that the server counted (deletions it does not)."""

import getpass
import re
import time

from hakozuna_lab.programs.program import SHARED, Job, Program, Record, find, first_line, run_client
from hakozuna_lab.programs.server import Load, Server, connects, serve

SOCKET = "memcached.sock"
ROUNDS = 6


def load(job: Job) -> Load:
    client = [find("python3"), str(SHARED / "memcached.py"), SOCKET]
    began = time.perf_counter()
    for _ in range(job.count(ROUNDS)):
        said = run_client(client, job.workdir)
    seconds = time.perf_counter() - began
    return Load(sum(map(int, re.findall(r"STAT (?:cmd_set|cmd_get|incr_hits) (\d+)", said))), seconds)


def work(job: Job) -> Record:
    command = [
        find("memcached"),
        "-s",
        SOCKET,
        "-u",
        getpass.getuser(),
        "-m",
        "256",
        "-t",
        "4",
        "-c",
        "600",
        "-I",
        "2m",
    ]
    return serve(job, Server(command, lambda: connects(job.workdir / SOCKET)), lambda: load(job))


MEMCACHED = Program(
    "memcached",
    ("clients",),
    ("memcached", "python3"),
    lambda: first_line(find("memcached"), "--version").split()[1],
    work,
)
