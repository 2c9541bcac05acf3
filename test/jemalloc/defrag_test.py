# SPDX-License-Identifier: Apache-2.0
"""Redis with active defragmentation, which distributions leave out, built here with libhakozuna-je.so. Nine in ten of
400,000 keys are deleted at random. Redis then moves what is left until the rest goes back: 285 MiB become 38, of which
28 are live. The values stay as they were. Called by CTest as `defrag_test.py LIBRARY CACHE`, with LIBRARY's folder as
the place of the program and CACHE for the sources. Takes a minute the first time, then ten seconds. Exit code 77: the
sources cannot be had, or do not compile, here."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hakozuna_lab.programs.redis import DELETE, FILL, SURVIVORS_KEYS
from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import AbsentError

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
RESIDENT = 60 * MIB  # at most, of 28 MiB that are live, within LIMIT seconds
LIMIT = 30


def built(library: Path, cache: Path) -> Path:
    """Of Debian's sources of Redis with our library as its jemalloc. The folder has what the linker asks for."""
    got = sources.debian(cache, "redis")
    folder = library.parent / "redis"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(got.folder, folder)
    (folder / "src/redis-server").unlink(missing_ok=True)  # the suite of Redis has the distribution's there
    (folder / "libjemalloc.so").symlink_to(library)
    known = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "CFLAGS", "LDFLAGS")}
    options = ["MALLOC=jemalloc", "USE_SYSTEM_JEMALLOC=yes", "OPTIMIZATION=-O1"]
    options += [f"REDIS_CFLAGS=-I{HERE / 'redis'}", f"REDIS_LDFLAGS=-L{folder} -Wl,-rpath,{library.parent}"]
    make = ["make", "-C", "src", "-j2", "redis-server", *options]
    done = subprocess.run(make, cwd=folder, env=known, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # A function of jemalloc that the library lacks is ours.
        if "undefined reference" in done.stderr:
            sys.exit(done.stderr[-2000:])
        raise AbsentError(f"Redis does not compile here: {done.stderr[-500:]}")
    return folder / "src/redis-server"


class Redis:
    def __init__(self, program: Path, work: Path) -> None:
        self.socket = work / "redis.sock"
        command = [program, "--port", "0", "--unixsocket", self.socket, "--save", "", "--enable-debug-command", "yes"]
        self.process = subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL)
        for _ in range(300):
            if self.socket.exists() and self.says("PING") == "PONG":
                return
            time.sleep(0.1)
        raise AssertionError("redis-server does not answer")

    def says(self, *words: str) -> str:
        command = ["redis-cli", "-s", self.socket, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout.strip()

    def figure(self, section: str, name: str) -> int:
        rows = dict(line.partition(":")[::2] for line in self.says("INFO", section).splitlines())
        return int(rows[name])

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))

    def end(self) -> None:
        self.says("SHUTDOWN", "NOSAVE")
        assert self.process.wait(30) == 0


def check(program: Path, work: Path) -> None:
    redis = Redis(program, work)
    try:
        for script in (FILL, DELETE):
            assert redis.says("EVAL", script, "0", str(SURVIVORS_KEYS)) == ""
        full, values = redis.resident(), redis.says("DEBUG", "DIGEST")
        assert full > 2 * RESIDENT, f"{full >> 20} MiB to begin with"
        assert redis.says("CONFIG", "SET", "activedefrag", "yes") == "OK", "without active defragmentation"
        began = time.monotonic()
        while (least := redis.resident()) > RESIDENT and time.monotonic() - began < LIMIT:
            time.sleep(0.2)
        live, moved = redis.figure("memory", "used_memory"), redis.figure("stats", "active_defrag_hits")
        print(f"{full >> 20} MiB resident, {least >> 20} after {time.monotonic() - began:.1f} s, "
              f"{live >> 20} live, {moved} blocks moved")  # fmt: skip
        assert least <= RESIDENT
        assert moved > 1000
        assert redis.says("DEBUG", "DIGEST") == values, "the values changed"
        redis.end()
    finally:
        redis.process.kill()


def main() -> None:
    library, cache = (Path(argument).resolve() for argument in sys.argv[1:3])
    cache.mkdir(parents=True, exist_ok=True)
    try:
        for name in ("redis-cli", "make", "dpkg-source"):
            sources.need_program(name)
        program = built(library, cache)
    except AbsentError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        check(program, Path(work))
    shutil.rmtree(program.parent.parent)


main()
