# SPDX-License-Identifier: Apache-2.0
"""What the library tells of the calls that lead to a bad pointer, and what `hz explain` makes of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hakozuna_observe import explain
from hakozuna_observe.symbols import Names
from holders import BUILD, LINES, ROOT, library

PROGRAM = BUILD / "test/observe/hz-bad-pointer"
LIMIT = 20  # seconds


def hz(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """The launcher's exit code, and what it writes."""
    done = subprocess.run(
        [ROOT / "hz", *arguments], input=stdin, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    return done.returncode, done.stdout, done.stderr


def report_of(program: Path | str, mode: str, line: str, **variables: str) -> str:
    """What such a program writes to stderr."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
    done = subprocess.run(
        ["env", f"LD_PRELOAD={library(line)}", program, mode],
        env=environment | variables,
        stderr=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.stderr


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("mode", "code", "function"),
    [("twice", "E03", "Session5close"), ("inside", "E04", "12close_inside"), ("static", "E01", "12close_static")],
)
def test_the_call_that_was_wrong_is_told_by_name(line: str, mode: str, code: str, function: str) -> None:
    """Also of a function that is not exported, and no frame of ours."""
    told = report_of(PROGRAM, mode, line)
    assert re.search(rf"^hz: fatal: {code} ", told, re.MULTILINE), told
    calls = [one for one in told.splitlines() if one.startswith("hz: called from ")]
    assert function in calls[0]
    assert calls[-1].startswith("hz: called from main+0x")
    assert ("_ZL5twiceR7Session+0x" in told) == (mode == "twice")
    assert all(f"({PROGRAM}+0x" in one for one in calls), "a frame of the library, or of the C library"


def test_a_program_that_goes_on_tells_the_stacks_of_a_few_reports() -> None:
    """Each report has its line."""
    told = report_of(PROGRAM, "often", LINES[0], HZ_ON_INVALID="report")
    assert told.count("hz: error: E01") == 40
    assert told.count("called from main+") == 8


def test_the_report_is_explained_by_file_and_line() -> None:
    """From a pipe, from a file, and as words."""
    told = report_of(PROGRAM, "twice", LINES[0])
    code, out, wrong = hz("explain", stdin=f"some log\n{told}and more\n")
    assert (code, wrong) == (0, "")
    source = (ROOT / "test/observe/bad_pointer.cpp").read_text().splitlines()
    line = 1 + next(number for number, each in enumerate(source) if "std::free(text_);" in each)
    assert re.search(rf"^  Session::close\(\) +bad_pointer\.cpp:{line}$", out, re.MULTILINE), out
    assert re.search(r"^  twice\(Session&\) +bad_pointer\.cpp:\d+$", out, re.MULTILINE), out
    assert "freed again" in out
    assert hz("explain", told) == (0, out, "")


def test_a_guarded_block_tells_who_asked_for_it_and_who_freed_it(tmp_path: Path) -> None:
    """By its mappings."""
    log = tmp_path / "log"
    log.write_text(report_of(PROGRAM, "twice", LINES[0], HZ_GUARD_SAMPLE="1"))
    code, out, wrong = hz("explain", str(log))
    assert (code, wrong) == (0, "")
    for did, function in (("allocated by", "Session::open"), ("freed by", "Session::close"), ("called from", "main")):
        assert re.search(rf"^{did}.*\n(  .*\n)*?  {function}", out, re.MULTILINE), out
    assert "HZ_GUARD_SAMPLE" not in out, "what is there already is not advised"


def test_a_stripped_program_has_places(tmp_path: Path) -> None:
    """Which are resolved where the program with symbols is."""
    if shutil.which("strip") is None:
        pytest.skip("strip is not installed")
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, PROGRAM], check=True)
    told = report_of(stripped, "twice", LINES[0])
    assert re.search(rf"^hz: called from \({re.escape(str(stripped))}\+0x[0-9a-f]+\)$", told, re.MULTILINE), told
    code, out, _ = hz("explain", told)
    assert code == 0
    assert "  stripped+0x" in out
    shutil.copy(PROGRAM, stripped)
    assert "Session::close()" in hz("explain", told)[1]


@pytest.mark.parametrize("other", [Path("/bin/true"), None])
def test_a_program_that_was_replaced_has_its_names(tmp_path: Path, other: Path | None) -> None:
    """An upgrade while the program ran: the program's own file stays, by the kernel."""
    program = tmp_path / "program"
    shutil.copy(PROGRAM, program)
    running = subprocess.Popen(
        ["env", f"LD_PRELOAD={library(LINES[0])}", program, "twice", "late"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    program.unlink()
    if other is not None:
        shutil.copy(other, program)
    _, told = running.communicate("\n", LIMIT)
    assert "hz: fatal: E03" in told
    assert f"({program} (deleted)+0x" in told
    assert "Session5close" in told
    assert "Session::close()" in hz("explain", told)[1]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("hz: fatal: E01 foreign-pointer ptr=0x1 class=- line=x thread=1", "no address of this heap"),
        ("[3.1] app: hz: error: E05 size-mismatch ptr=0x1 class=- line=x thread=1", "size that was given"),
        ("hz: fatal: E99 unheard-of ptr=0x1 class=- line=x thread=1", "E99"),
        ("hz: fatal: E03 a ptr=0x1\x1b[31m\nhz: called from \x1b]0;x\x07+0x1 (/no/such\x1b[2J+0x12)", "called from"),
        ("hz: fatal: E03 a ptr=0x1\nhz: called from (/dev/zero+0xffffffffffffffff)", "zero+0x"),
        ("hz: fatal: E03 a ptr=0x1\nhz: guarded allocated thread=1 stack=0x0,0xffffffffffffffff", "allocated by"),
    ],
)
def test_any_text_is_explained_or_passed_over(text: str, part: str) -> None:
    """No escape gets through, and no device is read."""
    found = explain.explain(text)
    assert part in found
    assert "\x1b" not in found
    assert "\x07" not in found


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """Neither as the report, nor as a file that the report names."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert hz("explain", str(fifo))[0] == 2
    told = f"hz: fatal: E03 a ptr=0x1\nhz: called from ({fifo}+0x12)"
    assert "fifo+0x12" in hz("explain", told)[1]


def test_what_is_no_report_is_said_so(tmp_path: Path) -> None:
    """By exit codes, too."""
    assert hz("explain", stdin="nothing\n")[0] == 1
    assert hz("explain", str(tmp_path / "missing"))[0] == 2


def test_every_code_has_a_meaning() -> None:
    """Of those that the page of error codes lists."""
    codes = set(re.findall(r"^\| (E\d\d) ", (ROOT / "doc/errors.md").read_text(), re.MULTILINE))
    assert codes == set(explain.MEANINGS)
    for code in sorted(codes):
        report = explain.Report(f"{code} x", code)
        assert explain.MEANINGS[code].what in explain.render(report, Names())
