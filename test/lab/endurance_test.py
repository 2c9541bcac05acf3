# SPDX-License-Identifier: Apache-2.0
"""hz endure --hours: that a service that leaks is found, in some seconds and under trouble; what is told of stories of
which it is known how they went; and what is no run. The services themselves are run by hand, for hours."""

import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hakozuna_lab import LabError, aftermath, checks
from hakozuna_lab.contender import Contender, find_line, line_names
from hakozuna_lab.endurance import page, run
from hakozuna_lab.endurance.run import Clock, Look, Story
from hakozuna_lab.endurance.services import SERVICES, Python, Service
from hakozuna_lab.programs.python import PYTHON

OURS = find_line(line_names()[0])
ROUNDS = 14
MIB = 8  # that are leaked in each


@dataclass
class Rounds(Clock):
    """So many of them, however long they take."""

    left: int = ROUNDS

    def over(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_service_that_leaks_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Under all that is thrown at a service in Python: in a third of the rounds the system refuses it memory, in
    a third the heap does."""
    leaky = Service("leaky", PYTHON, lambda job: Python(job, MIB << 20))
    (story,) = run.run([leaky], OURS, Rounds(1, rest_seconds=0.5))
    assert not story.failed
    assert len(story.rest) == len(story.full) == ROUNDS
    assert story.rest[-1].live - story.rest[0].live == pytest.approx((ROUNDS - 1) * MIB, rel=0.1)
    assert story.verdict == "drift"
    assert sum(story.thrown.values()) > 0
    assert run.tell([story]) == run.FAILED
    assert re.fullmatch(r"hz: leaky drifts: \+[\d.]+ %/h \[.*\], more than 1 %/h\n", capsys.readouterr().err)


def test_who_is_not_served_by_us_has_failed() -> None:
    (story,) = run.run([SERVICES["python-small"]], Contender("glibc", None), Rounds(1, rest_seconds=0, left=1))
    assert "is not served by us" in story.failed


def story(name: str, percent: float, hours: float, failed: str = "") -> Story:
    """A look each hundredth of the time; memory grows by so much an hour."""
    looks = [Look(hours * i / 100, 60, 50 * (1 + percent / 100 * hours * i / 100), 10, 1, 2, 3, 4) for i in range(101)]
    made = Story(replace(SERVICES["redis"], name=name), "7", looks, looks, [(look.hours, look.pss) for look in looks])
    made.thrown, made.failed = Counter(trim=3, stop=12), failed
    return made


@pytest.mark.parametrize(
    ("told", "code", "line"),
    [
        (story("good", 0.1, 8), 0, ""),
        (story("leaky", 2, 8), 1, r"hz: leaky drifts: \+1\.\d+ %/h \[\+1\.\d+\.\.\+1\.\d+\], more than 1 %/h\n"),
        (story("short", 0, 0.1), 2, r"hz: short is unclear: \+0\.00 %/h \[-42\.50\.\.\+2\.50\] has 1 in it; .*\n"),
        (story("dead", 0, 8, "no end"), 1, r"hz: dead failed: no end\n"),
    ],
)
def test_one_line_says_what_does_not_pass(
    told: Story, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.tell([told]) == code
    assert re.fullmatch(line, capsys.readouterr().err)


def test_what_fails_goes_before_what_is_unclear() -> None:
    for order in itertools.permutations([story("a", 0, 8), story("b", 2, 8), story("c", 0, 0.1)]):
        assert run.tell(order) == 1


def test_the_page_and_its_pictures(tmp_path: Path) -> None:
    stories = [story("good", 0.1, 8), story("dead", 0, 4, "no end"), Story(SERVICES["nginx"], "1", failed="no start")]
    conditions = page.Conditions.begin(OURS, 8, ["hz", "endure"], {"postgres": "postgres missing"})
    text = page.write(stories, conditions, tmp_path / "endurance.md").read_text(encoding="utf-8")
    assert "1 level, 2 failed." in text
    assert re.search(
        r"^\| good \| 101 \| 60\.0 \| 60\.0 \| 50\.3 \| 10\.0 \| 1\.0 \| 2\.0 \| 3\.0 \| 4\.0 \|", text, re.M
    )
    assert "\n- good: 12 stop, 3 trim\n" in text
    assert "\n- postgres: absent, postgres missing" in text
    assert "nginx failed: no start" in text
    rest = aftermath.read(tmp_path / "endurance.md", aftermath.AT_REST)
    assert [len(points) for points in rest.values()] == [40, 21, 0]
    assert {picture.name for picture in tmp_path.glob("*.svg")} == {
        f"endurance-{kind}.svg" for kind in ("rest", "kept", "highest")
    }
    assert str(tmp_path) not in text


def test_what_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LabError, match="there is no service 'nonsense'; the services are: redis "):
        run.choose(["redis", "nonsense"])
    with pytest.raises(LabError, match="no service can run: redis: no-such-program missing"):
        monkeypatch.setitem(
            SERVICES, "redis", replace(SERVICES["redis"], program=replace(PYTHON, needs=("no-such-program",)))
        )
        run.choose(["redis"])
    for words in (["--hours", "0"], ["--hours", "nan"], ["--hours", "1e9"], ["--out", str(tmp_path)], ["redis"]):
        monkeypatch.setattr("sys.argv", ["hz", "endure", *words])
        monkeypatch.setattr(checks, "endure", lambda: pytest.fail("the long runs were started"))
        try:
            code = checks.main()
        except SystemExit as end:
            code = int(end.code or 0)
        assert code == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_services_are_those_that_help_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        checks.parser().parse_args(["endure", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    named = told.partition("Services: ")[2].partition(", which has to fail")[0].replace("; and", ",")
    assert named.split(", ") == list(SERVICES)
