# SPDX-License-Identifier: Apache-2.0
"""nginx with two workers under ab: 20 clients ask for a page that is compressed for each of them, or, over connections
that they keep, for one that nginx fetches from itself. The configuration is that of test/preload/nginx.sh, which asks
for pages of all kinds and compares the answers; here two kinds are asked for often."""

import csv
import os
import re
import signal
import socket

from hakozuna_lab import RunError
from hakozuna_lab.programs.program import SHARED, Job, Program, Record, find, first_line, run_client
from hakozuna_lab.programs.server import Load, Server, connects, serve

REQUESTS = {"compressed": 80_000, "proxied": 80_000}
PATHS = {"compressed": "page40.html", "proxied": "proxied/page20.html"}


def write_site(job: Job, port: int) -> None:
    (job.workdir / "site").mkdir()
    (job.workdir / "temp").mkdir()
    for page in (20, 40):
        rows = (f"{page * row % 1009} <p>some text</p>\n" for row in range(1 + page * page // 4))
        (job.workdir / f"site/page{page}.html").write_text("".join(rows), encoding="utf-8")
    text = (SHARED / "nginx.conf").read_text(encoding="utf-8")
    # Of root's work folder the workers must read.
    values = {"user": "user root;" if os.getuid() == 0 else "", "port": str(port), "work": str(job.workdir)}
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    # ab speaks HTTP 1.0, to which nginx would not compress.
    text = text.replace("gzip on;", "gzip on;\n  gzip_http_version 1.0;")
    (job.workdir / "nginx.conf").write_text(text, encoding="utf-8")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def load(job: Job, port: int) -> Load:
    return ask(job, port, PATHS[job.case], job.count(REQUESTS[job.case]))


def ask(job: Job, port: int, path: str, requests: int) -> Load:
    said = run_client(
        [find("ab"), "-q", "-k", "-n", str(requests), "-c", "20", "-e", "percentiles.csv",
         "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/{path}"],
        job.workdir,
    )  # fmt: skip
    answered, bad = (re.search(rf"^{what}: +(\d+)", said, re.M) for what in ("Complete requests", "Failed requests"))
    taken = re.search(r"^Time taken for tests: +([\d.]+) seconds", said, re.M)
    if not (answered and bad and taken) or int(answered[1]) != requests or int(bad[1]) or "Non-2xx" in said:
        raise RunError(f"ab: not every request was answered: {said}")
    with (job.workdir / "percentiles.csv").open(encoding="utf-8") as file:
        times = {row["Percentage served"]: float(row["Time in ms"]) for row in csv.DictReader(file)}
    return Load(requests, float(taken[1]), {f"p{n}": times[str(n)] for n in (50, 95, 99)})


def server(job: Job, port: int) -> Server:
    write_site(job, port)
    command = [find("nginx"), "-e", str(job.workdir / "error.log"), "-c", str(job.workdir / "nginx.conf")]
    return Server(command, lambda: connects(job.workdir / "nginx.sock"), stop=signal.SIGQUIT)


def work(job: Job) -> Record:
    port = free_port()
    return serve(job, server(job, port), lambda: load(job, port))


NGINX = Program(
    "nginx", tuple(PATHS), ("nginx", "ab"), lambda: first_line(find("nginx"), "-v").rpartition("/")[2], work
)
