# SPDX-License-Identifier: Apache-2.0
"""hz test: what is read from ctest's account, what clang-tidy looks at, and what the command line understands."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hakozuna_lab import checks, matrix
from hakozuna_lab.paths import ROOT

RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x" tests="6">
  <testcase name="stress.hz4.direct.Whole" time="1.5" status="run">
    <system-out>[  SKIPPED ] Whole.One (0 ms)
[  SKIPPED ] All/Whole.Two/3, where GetParam() = 8 (0 ms)
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Whole.One
</system-out>
  </testcase>
  <testcase name="unit.Broken" time="0.25" status="fail">
    <failure message=""/>
    <system-out>[ RUN      ] Broken.One
test/unit/broken_test.cpp:12: Failure
Expected equality of these values:
  1
  2
[  FAILED  ] Broken.One (3 ms)
[  FAILED  ] Broken/0.Two, where TypeParam = hz::Hz3 (3 ms)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Broken.One
</system-out>
  </testcase>
  <testcase name="preload.hz3.go" time="0.125" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
  <testcase name="unit.absent" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="unit.Crashed" time="30" status="fail"><failure message=""/><system-out>no word</system-out></testcase>
  <testcase name="unit.Left" time="0" status="disabled"><skipped message="Disabled"/></testcase>
</testsuite>
"""


@pytest.fixture
def cases(tmp_path: Path) -> list[checks.Case]:
    file = tmp_path / "results.xml"
    file.write_text(RESULTS, encoding="utf-8")
    return checks.read_results(file)


def test_what_failed_is_named_with_its_cases(cases: list[checks.Case]) -> None:
    assert checks.failures(cases) == [
        "unit.Broken",
        "  Broken.One",
        "  Broken/0.Two",
        "  | test/unit/broken_test.cpp:12: Failure",
        "  | Expected equality of these values:",
        "  |   1",
        "  |   2",
        "unit.absent",
        "unit.Crashed",
        "  | no word",
    ]


def test_the_first_failures_are_repeated_for_the_rest_follow_from_them() -> None:
    output = "".join(f"a.cpp:{line}: Failure\nit is {line}\n\n" for line in range(1, 10))
    shown = checks.failures([checks.Case("unit.Many", "unit", 1.0, "fail", output)])
    assert shown[:3] == ["unit.Many", "  | a.cpp:1: Failure", "  | it is 1"]
    assert len(shown) == 1 + checks.WORDS


def test_what_was_skipped_inside_of_a_suite_is_named(cases: list[checks.Case]) -> None:
    assert checks.skipped(cases) == [
        "stress.hz4.direct.Whole All/Whole.Two/3",
        "stress.hz4.direct.Whole Whole.One",
        "preload.hz3.go",
    ]


def test_subjects_of_commits_have_a_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = ["fork: do not deadlock in a handler", "os/linux: read the clock", "a: " + 69 * "b"]
    wrong = ["Fork: do not deadlock", "fork: Do not deadlock", "do not deadlock", "fork: do not.", "a: " + 70 * "b"]
    assert [subject for subject in right + wrong if not checks.SUBJECT.fullmatch(subject)] == wrong
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    assert checks.check_subjects() is None  # that commit is not there
    for subject in ("Old", *right, wrong[0]):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
        if subject == "Old":
            old = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
            monkeypatch.setattr(checks, "BEFORE_SUBJECTS", old.stdout.strip())
    assert checks.check_subjects() == [wrong[0]]


def test_where_the_time_went(cases: list[checks.Case], capsys: pytest.CaptureFixture[str]) -> None:
    checks.tell_times(cases)
    text = capsys.readouterr().out
    assert text.index("unit ") < text.index("stress ") < text.index("preload ")
    assert "    4 tests     30.2 s, the longest   30.0 s" in text
    slowest = text[text.index("slowest") :].splitlines()
    assert slowest[1].split() == ["30.0", "s", "unit.Crashed"]


def test_a_step_that_fails_is_in_the_summary_and_the_next_one_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = checks.Ledger()
    ledger.do("one", lambda: ["its test"])
    ledger.do("two", lambda: None)
    assert ledger.close() == 1
    summary = capsys.readouterr().out.split("=== summary")[1]
    assert [line.split()[:2] for line in summary.splitlines()[1:4]] == [
        ["one", "FAILED"],
        ["its", "test"],
        ["two", "passed"],
    ]


def test_lanes_that_pass_are_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = checks.Ledger()
    ledger.do("one", lambda: None)
    assert ledger.close() == 0
    assert "one" in capsys.readouterr().out


CELLS = (matrix.Cell("unit", matrix.ONCE),)
LANES = (checks.Lane("one", cells=CELLS), checks.Lane("none of it is due"), checks.Lane("two", cells=CELLS))


@pytest.fixture
def two_lanes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Of `hz test --all`, the first of which cannot be built; which of them were begun."""
    begun: list[str] = []

    def build(lane: checks.Lane, beside_tests: bool = False) -> list[str] | None:
        assert beside_tests
        begun.append(lane.preset)
        checks.log_of(lane.preset).write_text(f"why not {lane.preset}\n", encoding="utf-8")
        return ["the build"] if lane.preset == "one" else None

    monkeypatch.setattr(checks, "BUILDS", tmp_path)
    monkeypatch.setattr(checks, "build", build)
    monkeypatch.setattr(checks, "run", lambda *_: None)
    monkeypatch.setattr(checks, "check_format", lambda: None)
    monkeypatch.setattr(checks, "check_subjects", lambda: None)
    monkeypatch.setattr(checks, "check_tidy", lambda: None)
    monkeypatch.setattr(checks, "ending", threading.Event())
    return begun


def test_a_lane_that_cannot_be_built_keeps_no_other_from_running(
    two_lanes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert checks.check_everything(checks.Ledger(), LANES, []) == 1
    text, summary = capsys.readouterr().out.split("=== summary")
    assert text.index("why not one") < text.index("=== two: build")
    assert "why not two" not in text
    assert [line.rsplit(maxsplit=3)[:2] for line in summary.splitlines()[1:-1] if " s" in line] == [
        ["format", "passed"],
        ["subjects", "passed"],
        ["one: build", "FAILED"],
        ["two: build", "passed"],
        ["two: tests", "passed"],
        ["tidy", "passed"],
        ["shares", "passed"],
    ]
    assert two_lanes == ["one", "two"]


def test_nothing_more_is_begun_after_an_interruption(
    two_lanes: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checks.check_everything(checks.Ledger(), LANES, [])
    assert two_lanes == ["one", "two"]
    assert not checks.logged(["touch", str(tmp_path / "begun")], tmp_path / "log")
    assert not (tmp_path / "begun").exists()


def entry(file: str, line: str) -> dict[str, str]:
    return {"directory": str(ROOT / "build/x"), "file": str(ROOT / file), "command": f"clang++ -DHZ_LINE={line} {file}"}


def test_one_builds_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "BUILDS", tmp_path)
    monkeypatch.setattr(checks, "ending", threading.Event())
    order: list[str] = []

    def other() -> None:
        with checks.only_builder("release"):
            order.append("second")

    with checks.only_builder("release"):
        with checks.only_builder("debug"):
            pass
        waits = threading.Thread(target=other)
        waits.start()
        waits.join(0.5)
        order.append("first")
    waits.join(10)
    assert order == ["first", "second"]
    assert "waiting for another hz that builds release" in capsys.readouterr().err


def test_tidy_sees_every_lines_heap_and_other_files_once() -> None:
    files = ("src/export/direct.cpp", "src/export/malloc.cpp", "src/os/linux.cpp", "test/unit/os_test.cpp")
    database = [entry(file, line) for line in ("Hakozuna", "Hz8") for file in files]
    chosen = [(e["file"].removeprefix(f"{ROOT}/"), e["command"].split()[1]) for e in checks.tidy_commands(database)]
    assert sorted(chosen) == [
        ("src/export/direct.cpp", "-DHZ_LINE=Hakozuna"),
        ("src/export/direct.cpp", "-DHZ_LINE=Hz8"),
        ("src/export/malloc.cpp", "-DHZ_LINE=Hakozuna"),
        ("src/os/linux.cpp", "-DHZ_LINE=Hakozuna"),
    ]


@pytest.mark.parametrize(("tests", "said"), [(700.0, None), (3000.0, ["asan: 75 % of the time, not 30"]), (5.0, None)])
def test_a_preset_that_takes_twice_its_share_is_named(tests: float, said: list[str] | None) -> None:
    ledger = checks.Ledger()
    ledger.steps = [
        ("release: tests", True, 1000.0, []),
        ("asan: build", True, 0.0, []),
        ("asan: tests", True, tests, []),
    ]
    if tests < 100:
        ledger.steps = ledger.steps[1:]
    assert checks.too_long(ledger, {"release": 70, "asan": 30}) == said


@pytest.mark.parametrize(
    ("words", "chooses"), [("-L death", True), ("-RLine", True), ("--rerun-failed", True), ("-V", False)]
)
def test_arguments_that_choose_tests_run_them_in_full(words: str, chooses: bool) -> None:
    assert checks.names_tests(words.split()) is chooses


def test_what_was_joined_for_the_compiler_is_looked_at_apart(tmp_path: Path) -> None:
    joined = tmp_path / "Unity" / "unity_0_cxx.cxx"
    joined.parent.mkdir()
    joined.write_text(f'/* made */\n\n#include "{ROOT}/src/a.cpp"\n\n#include "{ROOT}/src/b.cpp"\n', encoding="utf-8")
    entry = {"directory": str(tmp_path), "file": str(joined), "command": f"clang++ -c {joined}"}
    assert [one["command"] for one in checks.tidy_commands([entry])] == [
        f"clang++ -c {ROOT}/src/a.cpp",
        f"clang++ -c {ROOT}/src/b.cpp",
    ]


def test_what_a_lane_leaves_out_may_be_much(tmp_path: Path) -> None:
    names = [f"kind.{letter}" for letter in "abcdefghijklmn"]
    tests = "".join(f'add_test({name} "true")\n' for name in names)
    (tmp_path / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
    numbers = checks.numbers_of(tmp_path, lambda name: name[-1] in "bcdefghijklm", dict(os.environ))
    shown = subprocess.run(
        ["ctest", "--test-dir", str(tmp_path), "-N", "-I", numbers], stdout=subprocess.PIPE, text=True, check=True
    )
    assert [name for name in names if f": {name}\n" in shown.stdout] == ["kind.a", "kind.n"]
    assert checks.numbers_of(tmp_path, lambda _: True, dict(os.environ)) == ""


def test_what_is_for_ctest_goes_to_ctest() -> None:
    options = checks.parser().parse_args(["test", "--all", "-L", "death", "-V"])
    assert (options.all, options.ctest) == (True, ["-L", "death", "-V"])
    with pytest.raises(SystemExit):
        checks.parser().parse_args(["test", "--nonsense"])


def test_help_builds_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("something was started"))
    for command in ("test", "coverage", "programs", "suites", "endure"):
        monkeypatch.setattr("sys.argv", ["hz", command, "--help"])
        with pytest.raises(SystemExit) as end:
            checks.main()
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: hz {command}")


def test_a_list_may_be_cut_short() -> None:
    asked = [sys.executable, "-B", "-m", "hakozuna_lab.checks", "test", "--list"]
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(asked, cwd=ROOT / "lab", stdout=writes, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, "")
