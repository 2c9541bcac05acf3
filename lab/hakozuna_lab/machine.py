# SPDX-License-Identifier: Apache-2.0
"""The machine that is measured on: its conditions for the header, and how much of it other processes used during a run.
Two reads of /proc/stat a run."""

import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hakozuna_lab.paths import ROOT

DISTURBED = 0.05  # a run during which others used more than this share of the machine
TICK = 1 / os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count() or 1
IDLE, IOWAIT, FIELDS = 3, 4, 8  # of the line "cpu" in /proc/stat; what follows these is counted in them already


@dataclass(frozen=True)
class CpuTimes:
    """Seconds. `busy`: of all CPUs, time stolen by other virtual machines included; `own`: ours and our children's,
    of whom only those that have ended and were waited for count."""

    wall: float
    busy: float
    own: float


def busy_seconds(stat: str) -> float:
    fields = [int(word) for word in stat.split("\n", 1)[0].split()[1 : 1 + FIELDS]]
    return (sum(fields) - fields[IDLE] - fields[IOWAIT]) * TICK


def cpu_times() -> CpuTimes:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return CpuTimes(time.monotonic(), busy_seconds(Path("/proc/stat").read_text(encoding="utf-8")), own)


def others_share(before: CpuTimes, after: CpuTimes, cpus: int = CPUS) -> float:
    """The share of the machine that others used between the two. /proc/stat counts in ticks, so one tick per CPU is
    within its error and is not held against anyone."""
    wall = max(after.wall - before.wall, TICK)
    others = (after.busy - before.busy) - (after.own - before.own) - cpus * TICK
    return max(0.0, others) / (wall * cpus)


def read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> tuple[str, bool]:
    """The commit of the tree, and whether it has changes of its own."""
    return git("rev-parse", "--verify", "-q", "HEAD") or "none", bool(git("status", "--porcelain"))


def cpu_name() -> str:
    for line in read_text("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def usable_cpus() -> int:
    return len(os.sched_getaffinity(0))


def kernel() -> str:
    return platform.release()


def thp() -> str:
    return read_text("/sys/kernel/mm/transparent_hugepage/enabled")


def governor() -> str:
    return read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def load() -> str:
    return read_text("/proc/loadavg")


def offer_ourselves() -> None:
    """When memory runs out, a workload of ours shall be what the kernel ends: children inherit it."""
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def prepare() -> None:
    """Before the first run. Who measures on a busy machine is told at once."""
    offer_ourselves()
    before = cpu_times()
    time.sleep(1)
    share = others_share(before, cpu_times())
    if share > DISTURBED:
        print(
            f"hz: other processes use {share:.0%} of the machine: runs will be disturbed, and repeated",
            file=sys.stderr,
        )
