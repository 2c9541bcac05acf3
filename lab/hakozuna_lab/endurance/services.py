# SPDX-License-Identifier: Apache-2.0
"""The services of `hz endure --hours`, and the load that each gets again and again: it is filled, then it is emptied,
without ever being started anew. Servers are started as the lab's programs start them; run.py calls. A round of any
costs about half a second of a processor."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab import RunError
from hakozuna_lab.endurance.trouble import squeezed_heap, squeezed_space
from hakozuna_lab.programs import nginx, postgres, python, redis
from hakozuna_lab.programs.program import TIMEOUT, Job, Program, find, run_client
from hakozuna_lab.programs.server import Server, connects
from hakozuna_lab.watch import tree

POLL_SECONDS = 0.1
EXPIRE = """for i, key in ipairs(redis.call('KEYS', '*')) do
  if i % 2 == 0 then redis.call('PEXPIRE', key, 200) else redis.call('UNLINK', key) end
end"""


def wait_until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not true():
        if time.monotonic() > deadline:
            raise RunError(f"{what} did not happen within {TIMEOUT:.0f} s")
        time.sleep(POLL_SECONDS)


class Work:
    """One service at work. `job` is its own, with the library that it is served by."""

    own_signal: signal.Signals | None = None  # what it has a handler for that goes on

    def __init__(self, job: Job, server: Server) -> None:
        self.job = job
        self.server = server
        self.rounds = 0

    def open(self, pid: int) -> None:
        """Once, when the server answers."""
        self.pid = pid

    def fill(self) -> None:
        raise NotImplementedError

    def drain(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Before the server is told to end."""


class Redis(Work):
    """Values of two sizes and lists; a forked child saves them while lists come and go; half of the keys expire, the
    others are freed by redis's own thread."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, redis.server(job))

    def fill(self) -> None:
        redis.benchmark(self.job, "set", 12_000, size=100, keys=8_000)
        redis.benchmark(self.job, "set", 3_000, size=4_000, keys=1_500)
        self.ask("BGSAVE")
        redis.benchmark(self.job, "lpush", 8_000)

    def drain(self) -> None:
        redis.benchmark(self.job, "lpop", 8_000)
        self.ask("EVAL", EXPIRE, "0")
        wait_until(lambda: self.ask("DBSIZE").strip() == "0", "the end of all keys")
        wait_until(lambda: "rdb_bgsave_in_progress:0" in self.ask("INFO", "persistence"), "the end of the forked child")
        if "rdb_last_bgsave_status:ok" not in self.ask("INFO", "persistence"):
            raise RunError("the forked child could not save")

    def ask(self, *words: str) -> str:
        said = run_client([find("redis-cli"), "-s", redis.SOCKET, *words], self.job.workdir)
        if said.startswith(("ERR", "(error)")):
            raise RunError(f"redis-server answered {words[0]}: {said}")
        return said


class Nginx(Work):
    """Pages compressed and pages fetched from itself; each third round it reads its configuration anew, with which its
    workers are others."""

    own_signal = signal.SIGUSR1

    def __init__(self, job: Job) -> None:
        self.port = nginx.free_port()
        super().__init__(job, nginx.server(job, self.port))

    def fill(self) -> None:
        for path in nginx.PATHS.values():
            nginx.ask(self.job, self.port, path, 600)

    def drain(self) -> None:
        if self.rounds % 3 == 2:
            old = set(tree(self.pid)[1:])
            os.kill(self.pid, signal.SIGHUP)
            wait_until(lambda: len(tree(self.pid)) == 1 + len(old) and not old & set(tree(self.pid)), "new workers")


class Postgres(Work):
    """Clients that stay for a while, clients that come for one transaction each, and a session that stays for all of
    the time: it sorts, hashes and joins what it made, and drops it."""

    own_signal = signal.SIGHUP
    fills = """CREATE TEMP TABLE grown AS
  SELECT i AS id, 'item-' || (i * 7919 % 60013) AS name, repeat('n', i % 300) AS note
  FROM generate_series(1, 12000) AS i;
SELECT md5(string_agg(name, ',' ORDER BY note, id)) FROM grown;
SELECT count(*) FROM grown a JOIN grown b ON b.name = 'item-' || a.id;
"""
    drains = """DROP TABLE grown;
TRUNCATE pgbench_history;
VACUUM pgbench_accounts, pgbench_tellers, pgbench_branches;
"""

    def __init__(self, job: Job) -> None:
        super().__init__(*postgres.cluster(job, postgres.SETTINGS))

    def open(self, pid: int) -> None:
        super().open(pid)
        postgres.run(self.job, "pgbench", "-q", "-i", "-s", "1")
        with (self.job.workdir / "session.log").open("wb") as log:
            self.session = subprocess.Popen(
                [postgres.tool("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
                cwd=self.job.workdir, env=postgres.clients_env(self.job), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True,
            )  # fmt: skip

    def fill(self) -> None:
        postgres.run(self.job, "pgbench", "-n", "-C", "-c", "4", "-t", "3")
        postgres.run(self.job, "pgbench", "-n", "-c", "4", "-t", "50")
        self.ask(self.fills)

    def drain(self) -> None:
        self.ask(self.drains)

    def ask(self, statements: str) -> None:
        assert self.session.stdin and self.session.stdout
        self.session.stdin.write(f"{statements}\\echo done\n")
        self.session.stdin.flush()
        for line in self.session.stdout:
            if line == "done\n":
                return
        raise RunError(f"the session ended: {(self.job.workdir / 'session.log').read_text(encoding='utf-8')[-2000:]}")

    def close(self) -> None:
        self.session.communicate()


class Python(Work):
    """Objects of all sizes; threads whose objects another frees; children by multiprocessing that free what their
    parent made. Of three rounds the system refuses it memory in one, and the heap does in another."""

    own_signal = signal.SIGUSR1
    socket_name = "tenant.sock"

    def __init__(self, job: Job, leak: int = 0) -> None:
        script = str(Path(__file__).with_name("tenant.py"))
        command = [find("python3"), script, self.socket_name, str(leak)]
        ready = lambda: connects(job.workdir / self.socket_name)  # noqa: E731
        super().__init__(job, Server(command, ready, {**job.env, **python.ENV}))

    def open(self, pid: int) -> None:
        super().open(pid)
        folder = os.open(self.job.workdir, os.O_PATH)
        try:
            self.client = socket.socket(socket.AF_UNIX)
            self.client.settimeout(TIMEOUT)
            self.client.connect(f"/proc/self/fd/{folder}/{self.socket_name}")
        finally:
            os.close(folder)

    def fill(self) -> None:
        self.client.sendall(b"grow\n")
        with self.squeezed():
            pass
        self.await_done()
        for what in ("threads", "forks"):
            self.ask(what)

    def squeezed(self) -> AbstractContextManager[None]:
        if self.rounds % 3 == 1:
            return squeezed_space(self.pid)
        if self.rounds % 3 == 2 and self.job.env.get("HZ_CONTROL") == "1":
            return squeezed_heap(self.pid)
        return nullcontext()

    def drain(self) -> None:
        self.ask("free")

    def ask(self, what: str) -> None:
        self.client.sendall(f"{what}\n".encode())
        self.await_done()

    def await_done(self) -> None:
        if self.client.recv(5, socket.MSG_WAITALL) != b"done\n":
            raise RunError("the service ended")

    def close(self) -> None:
        self.client.close()


@dataclass(frozen=True)
class Service:
    name: str
    program: Program  # tells whether it can run here, and its version
    work: Callable[[Job], Work]
    options: str = ""  # HZ_OPTIONS
    controlled: bool = True  # HZ_CONTROL=1: its knobs are set from outside
    on_request: bool = False

    @property
    def env(self) -> dict[str, str]:
        made = {"HZ_CONTROL": "1"} if self.controlled else {}
        return made | ({"HZ_OPTIONS": self.options} if self.options else {})


LEAK = 256 << 10  # bytes a round

SERVICES = {
    service.name: service
    for service in (
        Service("redis", redis.REDIS, Redis),
        Service("redis-learn", redis.REDIS, Redis, "policy:learn"),
        Service("postgres", postgres.POSTGRES, Postgres),
        Service("nginx", nginx.NGINX, Nginx),
        Service("python", python.PYTHON, Python),
        # Without any thread of ours.
        Service("python-small", python.PYTHON, Python, "preset:small,background:0", controlled=False),
        # Leaks by intent: that it is found shows that others would be.
        Service("leak", python.PYTHON, lambda job: Python(job, LEAK), on_request=True),
    )
}
