# SPDX-License-Identifier: Apache-2.0
"""Starts a server, puts a load on it, waits until it is idle, and stops it: what programs that are servers share. For
their runs, and for `hz endure --hours`, which loads them again and again."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hakozuna_lab import RunError
from hakozuna_lab.programs.program import Job, Record, refuse_warnings, tail
from hakozuna_lab.watch import Watch, read, rss_kib, signal_all, tree

IDLE_SECONDS = 2.0
START_SECONDS = 30
STOP_SECONDS = 60


@dataclass(frozen=True)
class Server:
    """How one is started, when it can be asked, and what ends it well. No `env`: that of the job."""

    command: Sequence[str]
    ready: Callable[[], bool]
    env: Mapping[str, str] | None = None
    stop: signal.Signals = signal.SIGTERM


@dataclass(frozen=True)
class Load:
    """What a load tool said, or what was counted and timed for it."""

    ops: float
    seconds: float
    latency_ms: Mapping[str, float] = field(default_factory=dict)


def serve(job: Job, server: Server, load: Callable[[], Load], prepare: Callable[[], object] = lambda: None) -> Record:
    """One run: start, `prepare`, `load`, idle, end. The record's memory is of the server and all its processes."""
    with running(job, server) as pid:
        with Watch(pid) as watch:
            prepare()
            before = cpu_seconds(pid)
            done = load()
            ended = time.perf_counter() - watch.started
            cpu = cpu_seconds(pid) - before
            time.sleep(IDLE_SECONDS * min(1, job.scale) if job.settle is None else job.settle / 1000)
            idle = rss_kib(pid)
        file = watch.one_file()
    return {
        "seconds": done.seconds,
        "ops": done.ops,
        "ops_per_s": done.ops / done.seconds,
        "latency_ms": dict(done.latency_ms),
        "server_cpu_seconds": cpu,
        "rss_peak_kib": watch.peak_kib,
        "rss_idle_kib": idle,
        "rss_series": watch.series,
        "load_ended": round(ended, 3),
        "watch_cpu_seconds": watch.cpu_seconds,
        "allocator_file": str(file),
    }


@contextmanager
def running(job: Job, server: Server) -> Iterator[int]:
    """A server that answers, and that ends well when it is told to."""
    log = job.workdir / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            server.command, env=dict(server.env or job.env), cwd=job.workdir, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        await_ready(process, server.ready, log)
        yield process.pid
        if process.poll() is not None:
            raise RunError(f"{server.command[0]} ended before it was told to: {tail(log)}")
        process.send_signal(server.stop)
        code = process.wait(STOP_SECONDS)
        if code != 0:
            raise RunError(f"{server.command[0]} ended with {code}: {tail(log)}")
        refuse_warnings(job, log)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{server.command[0]} did not end when it was told to") from error
    finally:
        if process.poll() is None:
            signal_all(tree(process.pid), signal.SIGKILL)
            process.wait()


def await_ready(process: "subprocess.Popen[bytes]", ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RunError(f"the server did not come up: {tail(log)}")
        time.sleep(0.02)


def connects(path: Path) -> bool:
    """Whether somebody listens at a socket, however long the path to its folder."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(f"/proc/self/fd/{folder}/{path.name}") == 0
    finally:
        os.close(folder)


def cpu_seconds(pid: int) -> float:
    """Of the tree, with what its ended members took."""
    ticks = 0
    for member in tree(pid):
        _, _, fields = read(Path(f"/proc/{member}/stat")).rpartition(")")
        ticks += sum(map(int, fields.split()[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")
