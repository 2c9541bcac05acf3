# SPDX-License-Identifier: Apache-2.0
"""OpenMetrics: the official parser reads what `hz stat` and `hz exporter` write: the process's own numbers."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from hakozuna_observe import openmetrics, picture
from holders import LINES, ROOT, Holders, hz
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

pytest_plugins = ("holders",)


def families_of(text: str) -> Iterator[Metric]:
    """What the official parser makes of it."""
    return iter(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(text: str) -> dict[str, dict[tuple[str, str], float]]:
    """By name and by (pid, size)."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for family in families_of(text):
        for sample in family.samples:
            key = (sample.labels.get("pid", ""), sample.labels.get("size", ""))
            found.setdefault(sample.name, {})[key] = sample.value
    return found


@pytest.mark.parametrize("line", LINES)
def test_the_official_parser_reads_it(line: str, hold: Holders) -> None:
    held = hold(line, HZ_BACKGROUND="0", HZ_LIMIT_HARD="1g")
    said = held.stats()[1]
    found = samples(hz("stat", "--openmetrics", str(held.pid)).stdout)
    pid = (str(held.pid), "")
    assert found["hakozuna_live_bytes"][pid] == said["bytes_live"]
    assert found["hakozuna_cached_bytes"][pid] == said["bytes_cached"]
    assert found["hakozuna_limit_hard_bytes"][pid] == 1 << 30
    assert found["hakozuna_spans_acquired_total"][pid] == said["spans_acquired"]
    assert found["hakozuna_build_info"][pid] == 1
    assert sum(found["hakozuna_class_out_bytes"].values()) + (10 << 20) == said["bytes_held"]


def test_of_many_processes_and_of_none(hold: Holders) -> None:
    pictures = [one for _ in range(3) for one in picture.look(hold("hakozuna").pid)]
    assert len(samples(openmetrics.render(pictures))["hakozuna_threads"]) == 3
    assert samples(openmetrics.render([])) == {}


def test_hostile_names_are_escaped(hold: Holders) -> None:
    (one,) = picture.look(hold("hakozuna").pid)
    bad = dataclasses.replace(one, program='a"b\\c\nd{}')
    families = list(families_of(openmetrics.render([bad])))
    assert families[0].samples[0].labels["program"] == 'a"b\\c\nd{}'


@pytest.fixture
def address() -> Iterator[str]:
    """Of an exporter that runs."""
    with subprocess.Popen(
        [ROOT / "hz", "exporter", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as exporter:
        assert exporter.stdout is not None
        words = exporter.stdout.readline().split()
        yield words[-1]
        subprocess.run(["pkill", "-TERM", "-s", str(exporter.pid), "python"], check=True)
        assert exporter.wait(20) in (0, -signal.SIGTERM)


def test_exporter_serves_all_processes(address: str, hold: Holders) -> None:
    pids = {str(hold(line).pid) for line in ("hakozuna", "hz7")}
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert answer.headers["Content-Type"] == openmetrics.CONTENT_TYPE
        found = samples(answer.read().decode())
    assert pids <= {pid for pid, _ in found["hakozuna_live_bytes"]}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address.replace("/metrics", "/other"), timeout=20)


@pytest.mark.parametrize(
    "listen", ["", "nonsense", "127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1:\u00b2", "203.0.113.1:1"]
)
def test_a_bad_address_gets_one_line(listen: str) -> None:
    answer = hz("exporter", "--listen", listen)
    assert answer.returncode == (125 if listen.startswith("203.") else 2)
    assert len(answer.stderr.splitlines()) == 1
    assert "hz: error: " in answer.stderr


def test_the_dashboard_asks_for_what_is_there(hold: Holders) -> None:
    (one,) = picture.look(hold("hakozuna").pid)
    there = set(samples(openmetrics.render([one])))
    dashboard = json.loads((ROOT / "doc/hakozuna-dashboard.json").read_text())
    questions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    questions += [variable["query"] for variable in dashboard["templating"]["list"]]
    asked = set(re.findall(r"hakozuna_\w+", " ".join(questions)))
    assert len(asked) >= 9
    assert asked <= there
