# SPDX-License-Identifier: Apache-2.0
"""What the lab's tests share: the made-up `lane` in the place of the real one, libraries that are empty files, and the
page that the tests of the report look at."""

from collections.abc import Iterator
from pathlib import Path

import browsing
import fakes
import made_up
import pytest
from hakozuna_lab import ab, bench, catalogue, contender, inventory, report, schedule
from hakozuna_lab.contender import Contender
from hakozuna_lab.runner import Runner
from selenium import webdriver


@pytest.fixture
def lane(tmp_path: Path) -> Path:
    return fakes.fake_lane(tmp_path)


@pytest.fixture
def runner(lane: Path) -> Runner:
    return Runner(catalogue.read(lane), {}, lane)


@pytest.fixture
def mine(tmp_path: Path) -> Contender:
    (tmp_path / "libmine.so").write_bytes(b"")
    return Contender("mine", tmp_path / "libmine.so")


@pytest.fixture
def tree(tmp_path: Path, lane: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build with the made-up `lane` and the lines `mine` and `other`, for whole commands; no peers, no programs."""
    monkeypatch.setenv("HZ_LAB_LINES", "mine other")
    monkeypatch.setattr(contender, "BUILD", tmp_path)
    for name in ("mine", "other"):
        (tmp_path / f"libhakozuna-{name}.so").write_bytes(name.encode())
    for module in (ab, bench):
        monkeypatch.setattr(module, "LANE", lane)
        monkeypatch.setattr(module, "prepare", lambda: None)
    monkeypatch.setattr(bench, "PROGRAMS", {})
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(inventory, "RESULTS", tmp_path / "results")
    return tmp_path


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else uses it: with a build running beside the tests, their runs would be repeated as disturbed."""
    monkeypatch.setattr(schedule, "others_share", lambda before, after: 0.0)


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return report.make([made_up.write(folder / "made-up.jsonl")], folder / "out")


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    opened = browsing.start()
    yield opened
    opened.quit()
