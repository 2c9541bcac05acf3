# SPDX-License-Identifier: Apache-2.0
"""The real programs, in sizes that take no time: that each runs and says what the tables need, and that a preload which
did not take effect, a wrong allocator, a warning and a crash are errors."""

import dataclasses
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hakozuna_lab import LabError, RunError
from hakozuna_lab.contender import Contender, find_line, line_names
from hakozuna_lab.programs import PROGRAMS
from hakozuna_lab.programs.program import Job, measure_to_end
from hakozuna_lab.programs.server import Load, Server, serve
from hakozuna_lab.watch import read

OURS = find_line(line_names()[0])
C_LIBRARY = Contender("glibc", None)
TINY = 0.002
NOT_EVERYWHERE = {"memtier"}  # not in the distribution
CELLS = [
    "redis/set", "redis/lists", "redis/mix", "redis/sizes", "redis/survivors", "python3/churn", "g++/templates",
    "clang++/templates", "sqlite3/index", "memcached/clients", "nginx/compressed", "nginx/proxied",
    "postgres/transactions", "postgres/lookups", "postgres/sessions", "memtier/mix",
]  # fmt: skip
WITH_LATENCY = (
    "redis/set",
    "redis/lists",
    "redis/mix",
    "redis/sizes",
    "nginx",
    "postgres/transactions",
    "postgres/lookups",
)
SERVERS = ("redis", "memcached", "nginx", "postgres")


def run(cell: str, contender: Contender, folder: Path, scale: float = TINY) -> dict[str, Any]:
    program = PROGRAMS[cell.partition("/")[0]]
    if reason := program.available():
        assert os.environ.get("CI") != "true" or program.name in NOT_EVERYWHERE, reason
        pytest.skip(reason)
    return program.run(contender, cell, folder, scale)


@pytest.fixture
def folder() -> Iterator[Path]:
    """As the lab makes them: other users may come to it, for the servers that refuse to run as root."""
    with tempfile.TemporaryDirectory(prefix="hz-lab-") as name:
        yield Path(name)


def test_these_are_all() -> None:
    assert sorted(cell for program in PROGRAMS.values() for cell in program.cells) == sorted(CELLS)


# The look-ups are transactions with one option more, and cost a cluster.
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell != "postgres/lookups"])
def test_record(cell: str, folder: Path) -> None:
    record = run(cell, OURS, folder)
    assert record["program"] == cell.partition("/")[0]
    assert record["version"][0].isdigit()
    assert record["ops"] >= 1
    assert record["ops_per_s"] == pytest.approx(record["ops"] / record["seconds"])
    assert Path(record["allocator_file"]) == OURS.library
    assert record["rss_peak_kib"] >= max(kib for _, kib in record["rss_series"]) > 0
    assert record["rss_peak_kib"] > 1000
    if cell.startswith(WITH_LATENCY):
        latency = record["latency_ms"]
        assert 0 <= latency["p50"] <= latency["p95"] <= latency["p99"]
    if cell.startswith(SERVERS):
        assert 1000 < record["rss_idle_kib"] <= record["rss_peak_kib"] * 1.02
        assert 0 < record["load_ended"] <= record["rss_series"][-1][0]
    else:
        assert "rss_idle_kib" not in record
        assert "load_ended" not in record


def test_a_server_is_watched_for_as_long_as_it_is_to_settle(folder: Path) -> None:
    record = PROGRAMS["redis"].run(OURS, "redis/lists", folder, TINY, settle=700)
    assert 0.65 < record["rss_series"][-1][0] - record["load_ended"] < 5


def test_the_c_library_serves_a_program_that_is_linked_with_another(folder: Path) -> None:
    record = run("redis/set", C_LIBRARY, folder)
    assert Path(record["allocator_file"]).name.startswith("libc.so")


def test_more_work_is_more_operations(folder: Path) -> None:
    operations = []
    for scale in (0.01, 0.02):
        (folder / str(scale)).mkdir()
        operations.append(run("sqlite3/index", C_LIBRARY, folder / str(scale), scale)["ops"])
    assert operations == [6000, 12000]


@pytest.mark.parametrize("cell", ["sqlite3/index", "redis/set"])
def test_a_preload_without_effect_is_an_error(cell: str, folder: Path) -> None:
    nowhere = Contender("x", folder / "libx.so")
    with pytest.raises(LabError, match=r"x: asked for .*libx.so, but malloc came from "):
        run(cell, nowhere, folder)


def test_a_wrong_allocator_is_an_error(folder: Path) -> None:
    other = shutil.copy(OURS.library or "", folder / "libother.so")
    mislabelled = dataclasses.replace(OURS, env={"LD_PRELOAD": f"{other}:{OURS.library}"})
    with pytest.raises(LabError, match=r"but malloc came from .*libother\.so"):
        run("sqlite3/index", mislabelled, folder)


def test_the_c_library_with_a_preload_is_an_error(folder: Path) -> None:
    with pytest.raises(LabError, match="asked for the C library"):
        run("sqlite3/index", dataclasses.replace(C_LIBRARY, env={"LD_PRELOAD": str(OURS.library)}), folder)


@pytest.mark.parametrize("cell", ["sqlite3/index", "redis/set"])
def test_a_setting_that_our_line_does_not_know_is_an_error(cell: str, folder: Path) -> None:
    with pytest.raises(LabError, match=r"hz: warning:.*nonsense"):
        run(cell, dataclasses.replace(OURS, env={"HZ_OPTIONS": "nonsense:1"}), folder)


def job(folder: Path) -> Job:
    return Job(C_LIBRARY, "case", folder, TINY)


def test_a_program_that_fails(folder: Path) -> None:
    with pytest.raises(RunError, match=r"sh ended with 139: .*last words"):
        measure_to_end(job(folder), ["sh", "-c", "echo last words; kill -SEGV $$"], 1)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no socket; exit 3", "did not come up: no socket"),
        ("touch up; trap 'echo hurt; exit 4' TERM; while :; do sleep 0.05; done", "sh ended with 4: .*hurt"),
        ("touch up; sleep 0.2; exit 0", "sh ended"),
    ],
)
def test_a_server_that_fails(script: str, message: str, folder: Path) -> None:
    def put_load() -> Load:
        return Load(1, 1)

    with pytest.raises(RunError, match=message):
        serve(job(folder), Server(["sh", "-c", script], (folder / "up").exists), put_load)


def test_a_load_that_fails_leaves_no_server_behind(folder: Path) -> None:
    def put_load() -> Load:
        raise RunError("refused")

    script = "sleep 60 & echo $! >child; touch up; wait"
    with pytest.raises(RunError, match="refused"):
        serve(job(folder), Server(["sh", "-c", script], (folder / "up").exists), put_load)
    child = (folder / "child").read_text(encoding="utf-8").strip()
    deadline = time.monotonic() + 10
    while read(Path(f"/proc/{child}/cmdline")):  # empty once it is dead, waited for or not
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_is_missing(folder: Path) -> None:
    redis = PROGRAMS["redis"]
    assert dataclasses.replace(redis, needs=("sh", "no-such-program")).available() == "no-such-program missing"
    with pytest.raises(LabError, match="redis has no cell 'redis/nonsense'; it has: redis/set"):
        redis.run(OURS, "redis/nonsense", folder)


MEMTIER = """#!{python}
import json, sys
latency = {{"p50.00": 0.5, "p95.00": 0.75, "p99.00": 1.5}}
totals = {{"Ops/sec": 50000.0, "Percentile Latencies": latency}}
with open(sys.argv[sys.argv.index("--json-out-file") + 1], "w") as out:
    json.dump({{"ALL STATS": {{"Totals": totals}}}}, out)
"""


def test_what_memtier_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool is replaced by one that does nothing but report; the server is the real one."""
    if PROGRAMS["redis"].available():
        pytest.skip("redis missing")
    tool = folder / "memtier_benchmark"
    tool.write_text(MEMTIER.format(python=sys.executable), encoding="utf-8")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    redis = sys.modules["hakozuna_lab.programs.redis"]
    found = redis.find
    monkeypatch.setattr(redis, "find", lambda name: str(tool) if name == tool.name else found(name))
    record = PROGRAMS["memtier"].run(OURS, "memtier/mix", folder, TINY)
    assert record["ops"] == 20 * 250
    assert record["ops_per_s"] == pytest.approx(50000)
    assert record["latency_ms"] == {"p50": 0.5, "p95": 0.75, "p99": 1.5}
