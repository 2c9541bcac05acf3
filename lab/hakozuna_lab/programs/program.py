# SPDX-License-Identifier: Apache-2.0
"""What a real program of the lab is: its cases, whether it can run here, and how a run becomes a record. The programs
that test/preload compares with and without us are mostly the same; there the question is whether the result is right,
here how fast it came, for any allocator. So these share their inputs, but run them longer and check less."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakozuna_lab import LabError, RunError
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import ROOT
from hakozuna_lab.process import Stream, run_watched

SHARED = ROOT / "test/preload"  # inputs that the tests of real programs use as well
PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])  # where Debian puts servers
TIMEOUT = 600.0  # seconds; what takes longer hangs

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run that is asked for. `scale` shrinks the work, for tests: 1 is what is measured, some 5 s on 2 CPUs."""

    contender: Contender
    case: str
    workdir: Path
    scale: float = 1.0
    settle: int | None = None  # milliseconds that a server is left alone before its memory is read

    def count(self, full: int) -> int:
        return max(1, round(full * self.scale))

    @property
    def env(self) -> dict[str, str]:
        return {**self.contender.environment(), "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True)
class Program:
    name: str
    cases: tuple[str, ...]
    needs: tuple[str, ...]  # commands that must be installed
    version: Callable[[], str]
    work: Callable[[Job], Record]
    places: str = PLACES

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(f"{self.name}/{case}" for case in self.cases)

    def available(self) -> str | None:
        """Why it cannot run here; None when it can."""
        missing = [name for name in self.needs if shutil.which(name, path=self.places) is None]
        return f"{', '.join(missing)} missing" if missing else None

    def run(
        self, contender: Contender, cell: str, workdir: Path, scale: float = 1.0, settle: int | None = None
    ) -> Record:
        """One run in `workdir`, a fresh folder that is the caller's to remove. A wrong allocator is an error."""
        if cell not in self.cells:
            raise LabError(f"{self.name} has no cell '{cell}'; it has: {' '.join(self.cells)}")
        job = Job(contender, cell.partition("/")[2], workdir, scale, settle)
        record = {"program": self.name, "version": self.version(), **self.work(job)}
        contender.check(record)
        return record


def find(name: str, places: str = PLACES) -> str:
    """The distribution's own, where there is one: what comes first on PATH may be a script that looks for it."""
    path = shutil.which(name, path="/usr/bin") or shutil.which(name, path=places)
    if path is None:
        raise LabError(f"{name} is not installed")
    return path


def client_env() -> dict[str, str]:
    """For everything that is not measured: no preload, whoever serves the server."""
    return {**Contender("client", None).environment(), "LC_ALL": "C", "TZ": "UTC"}


def served_env(job: Job) -> dict[str, str]:
    """For a program that a distribution links with an allocator of its choice (Debian: redis-server with jemalloc,
    swipl with tcmalloc), so that the C library, too, serves it only when it is preloaded."""
    env = job.env
    if job.contender.library is None:
        env["LD_PRELOAD"] = c_library()
    return env


def c_library() -> str:
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return next(line.split()[-1] for line in lines if "/libc.so" in line)


def run_client(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What a load tool, or another helper of a run, writes; an error when it fails."""
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env or client_env(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{command[0]} hangs") from error
    if done.returncode != 0:
        raise RunError(f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def first_line(*command: str) -> str:
    done = subprocess.run(
        command, env=client_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    return done.stdout.partition("\n")[0]


def measure_to_end(
    job: Job,
    command: Sequence[str],
    ops: float,
    *,
    env: Mapping[str, str] | None = None,
    stdin: Stream = subprocess.DEVNULL,
) -> Record:
    """Runs a program that is no server to its end. There is no idle moment then, and no latency."""
    log = job.workdir / "output"
    with log.open("wb") as output:
        done = run_watched(
            command, {**job.env, **(env or {})}, cwd=job.workdir, stdin=stdin, stdout=output,
            stderr=subprocess.STDOUT, timeout=TIMEOUT,
        )  # fmt: skip
    if done.code != 0:
        raise RunError(f"{command[0]} ended with {done.code}: {tail(log)}")
    refuse_warnings(job, log)
    return {
        "seconds": done.seconds,
        "ops": ops,
        "ops_per_s": ops / done.seconds,
        "latency_ms": {},
        "rss_peak_kib": done.peak_kib,
        "rss_series": done.watch.series,
        "watch_cpu_seconds": done.watch.cpu_seconds,
        "allocator_file": str(done.watch.one_file()),
    }


def tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


def refuse_warnings(job: Job, log: Path) -> None:
    """Our lines warn of a setting that they do not know: then the run is not what its name says."""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("hz: warning:"):
            raise LabError(f"{job.contender.name}: {line}")
