# SPDX-License-Identifier: Apache-2.0
"""`hz ab`: when it stops, what it decides, that it is seldom wrong about nothing, and its record."""

import json
from pathlib import Path
from typing import Any

import fakes
import numpy as np
import pytest
from hakozuna_lab import LabError, ab, stats
from hakozuna_lab.cli import run
from hakozuna_lab.comparison import CONFIDENCE, LOOKS, Comparison, compare, is_clear
from hakozuna_lab.contender import Contender, find_line
from hakozuna_lab.decision import decide
from hakozuna_lab.rows import Rounds
from hakozuna_lab.runner import Runner
from hakozuna_lab.stats import Estimate, median_interval, verdict
from hakozuna_lab.store import Cell, Results, load

CELL = Cell("lane", "guard_r50", 2, "fair")


def rounds(name: str, *mops: float, **changes: Any) -> Rounds:
    return {n: fakes.run(CELL, name, n, fakes.record(value, **changes)) for n, value in enumerate(mops)}


def compared(a: Rounds, b: Rounds) -> Comparison:
    return compare(CELL.id, a, b)


def test_words() -> None:
    ten = rounds("a", *[10.0] * 8)
    assert compared(ten, rounds("b", *[11.0] * 8)).word == "ahead"
    assert compared(ten, rounds("b", *[9.0] * 8)).word == "behind"
    assert compared(ten, rounds("b", *[10.05] * 8)).word == "level"
    assert compared(ten, rounds("b", *[9.0, 11.0] * 4)).word == "unclear"
    assert compared(ten, rounds("b", *[11.0] * 8, dirty=True)).word == "refused"
    assert compared(ten, rounds("b", *[11.0] * 8) | {3: fakes.run(CELL, "b", 3, {"failed": "x"})}).word == "refused"


def test_only_an_unclear_row_takes_more_pairs() -> None:
    ten = rounds("a", *[10.0] * 8)
    assert is_clear(compared(ten, rounds("b", *[11.0] * 8)))
    assert not is_clear(compared(ten, rounds("b", *[9.0, 11.0] * 4)))
    assert not is_clear(compared(ten, rounds("b", *[11.0] * 8, dirty=True)))
    assert is_clear(compared(ten, {0: fakes.run(CELL, "b", 0, {"failed": "x"})}))


def test_memory() -> None:
    ten = rounds("a", *[10.0] * 8)
    big = compared(ten, rounds("b", *[10.0] * 8, rss_peak_kib=9000, rss_idle_kib=3100))
    assert (big.peak.word, big.idle.word, big.after.word) == ("more", "level", "level")
    assert (big.peak.a_kib, big.peak.b_kib) == (4096, 7976)
    assert compared(rounds("b", *[10.0] * 8, rss_peak_kib=9000), ten).peak.word == "less"
    assert compared(ten, rounds("b", *[10.0] * 8, rss_peak_kib=5900)).peak.word == "level"  # less than a MiB
    sizes = [7000, 7000, 7000, 7000, 5000, 7000, 5000, 5000]
    wide = {n: fakes.run(CELL, "b", n, fakes.record(10.0, rss_peak_kib=kib)) for n, kib in enumerate(sizes)}
    assert compared(ten, wide).peak.word == "unclear"


def test_it_is_seldom_wrong_about_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library against itself, the runs 3 % apart: how often the looks find a difference."""
    monkeypatch.setattr(stats, "RESAMPLES", 1000)
    wrong = 0
    for ratios in np.random.default_rng(1).lognormal(0, 0.03, (150, LOOKS[-1])):
        words = [verdict(median_interval(ratios[:look].tolist(), CONFIDENCE)) for look in LOOKS]
        wrong += next((word for word in words if word != "unclear"), "unclear") in ("ahead", "behind")
    assert wrong / 150 < 0.08


def comparison(word: str, peak: str = "level") -> Comparison:
    good = compared(rounds("a", *[10.0] * 8), rounds("b", *[10.0] * 8))
    changes = {"word": word, "ratio": Estimate(1.1, 1, 1.2), "peak": type(good.peak)(100, 200, peak)}  # type: ignore[arg-type]
    return Comparison(**{**vars(good), **changes})


def test_decision() -> None:
    assert decide([comparison("ahead"), comparison("level"), comparison("unclear")]).go
    assert decide([comparison("level", "less")]).go
    assert not decide([comparison("level")]).go
    assert not decide([comparison("ahead"), comparison("behind")]).go
    assert not decide([comparison("ahead", "more")]).go
    assert not decide([comparison("ahead"), comparison("refused")]).go


def test_sides(tree: Path) -> None:
    mine, other = find_line("mine"), find_line("other")
    assert ab.sides(ab.Request(["mine", "other", "solo"])) == (mine, other, ["solo"])
    a, b, lanes = ab.sides(ab.Request(["solo"], ["retain=200"]))
    assert (a, b.library, b.name, b.env, lanes) == (
        mine,
        mine.library,
        "mine+retain=200",
        {"HZ_RETAIN": "200"},
        ["solo"],
    )
    a, b, lanes = ab.sides(ab.Request(["other"], ["retain=200", "stats=1"]))
    assert (a, b.env, lanes) == (other, {"HZ_RETAIN": "200", "HZ_STATS": "1"}, [])
    a, _, _ = ab.sides(ab.Request([f"before={tree}/libhakozuna-mine.so", "mine"]))
    assert (a.name, a.library) == ("before", mine.library)
    for words, settings in ((["mine"], []), (["mine", "mine"], []), (["mine", "solo"], []), ([], ["retain"])):
        with pytest.raises(LabError):
            ab.sides(ab.Request(words, settings))


@pytest.mark.usefixtures("quiet_machine")
def test_whole(tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = tree / "x.jsonl"
    monkeypatch.setattr(ab, "LOOKS", (2, 4))
    arguments = ["ab", "--set", "retain=200", "main_r90", "--threads", "2", "--out", str(out)]
    run(arguments)
    results = load(out)
    assert {run.record["retain"] for run in results.runs if run.contender != "mine"} == {"200"}
    # Level at once, so two pairs in each cell; the guard lane came unasked.
    assert len(results.runs) == 2 * 2 * 2
    assert results.end is not None
    printed = capsys.readouterr().out
    for expected in (
        "# mine+retain=200 against mine: NO-GO",
        "| guard_r50/T2/fair | guard |",
        "| main_r90/T2/fair |  |",
        "- won: nothing",
        "HZ_RETAIN=200",
    ):
        assert expected in printed
    assert json.loads(out.read_text(encoding="utf-8").splitlines()[0])["selection"]["first"] == "mine+retain=200"


@pytest.mark.usefixtures("quiet_machine")
def test_a_side_that_loses_early_is_run_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlike in `hz bench`, where a setting that loses to another one of its allocator is left out."""

    def measure(runner: Runner, cell: Cell, contender: Contender) -> dict[str, Any]:
        made.append(contender.name)
        return fakes.record(1 if contender.name == "mine" else 2)

    made: list[str] = []
    monkeypatch.setattr(Runner, "run", measure)
    monkeypatch.setattr(ab, "LOOKS", (8,))
    mine = Contender("mine", None)
    results = Results(tmp_path / "x.jsonl", fakes.header(["mine+retain=110", "mine"], [CELL]))
    ab.measure(results, [mine, ab.with_set(mine, ["retain=110"])], Runner({}, {}, tmp_path))
    assert made.count("mine") == made.count("mine+retain=110") == 8
