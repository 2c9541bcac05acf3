# SPDX-License-Identifier: Apache-2.0
"""hz suites: what is read from the suites' outputs, what becomes of a suite that fails, hangs, is absent or is not
served, and what the table says of it."""

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hakozuna_lab import LabError
from hakozuna_lab.contender import find_line, line_names
from hakozuna_lab.suites import SUITES, automake, cpython, go, libstdcxx, postgres, redis, run, rust, sources, sqlite
from hakozuna_lab.suites.suite import FAILED, PASSED, SKIPPED, AbsentError, Case, Ready, Suite, Turn

LINE = line_names()[0]
LIBRARY = find_line(LINE).library


def states(tests: Mapping[str, Case]) -> dict[str, str]:
    return {name: test.state for name, test in tests.items()}


def test_cpython() -> None:
    text = """0:00:01 load avg: 1.00 [  1/433] test_grammar passed
0:00:09 load avg: 1.10 [ 17/433/1] test_re failed (2 failures)
0:00:10 load avg: 1.10 [ 18/433/1] test_gdb skipped
0:00:11 load avg: 1.10 [ 19/433/1] test_kqueue skipped (resource denied)
0:00:12 load avg: 1.10 [ 20/433/2] test_capi crashed (Exit code -11)
0:00:13 load avg: 1.10 [ 21/433/3] test_ssl timed out (6 min 40 sec) (6 min 40 sec)
1 test failed:
    test_re
"""
    found = cpython.read(text)
    assert states(found) == {
        "test_grammar": PASSED, "test_re": FAILED, "test_gdb": SKIPPED, "test_kqueue": SKIPPED, "test_capi": FAILED,
        "test_ssl": FAILED,
    }  # fmt: skip
    assert found["test_re"].unit == "test_re"


def test_rust() -> None:
    text = """--- alloc
running 3 tests
test vec::test_drain_leak ... ok
test vec::test_swap_remove - should panic ... ok
test heap::alloc_system_overaligned_request ... FAILED
test result: FAILED. 2 passed; 1 failed
--- exit code 101
--- std_thread
test sleep_very_long ... ignored
"""
    found = rust.read(text)
    assert states(found) == {
        "alloc vec::test_drain_leak": PASSED, "alloc vec::test_swap_remove": PASSED,
        "alloc heap::alloc_system_overaligned_request": FAILED, "alloc (its end)": FAILED,
        "std_thread sleep_very_long": SKIPPED,
    }  # fmt: skip
    assert found["alloc vec::test_drain_leak"].unit == "alloc"


def test_libstdcxx() -> None:
    main = "int main() {}\n"
    assert libstdcxx.flags("// { dg-do run { target c++11 } }\n" + main) == ["-std=gnu++17"]
    assert libstdcxx.flags('// { dg-options "-std=gnu++2a" }\n// { dg-do run { target c++2a } }\n' + main) == [
        "-std=gnu++2a"
    ]
    assert libstdcxx.flags("// { dg-do run { target c++20 } }\n" + main) == ["-std=gnu++20"]
    for other in (
        "dg-do compile { target c++11 }",
        'dg-require-namedlocale "de_DE"',
        "dg-require-effective-target x32",
    ):
        assert libstdcxx.flags(f"// {{ {other} }}\n{main}") is None
    assert libstdcxx.flags("// no program\n") is None


def test_redis() -> None:
    text = """Testing unit/dump
\x1b[0;32;49m[ok]\x1b[0m: DUMP / RESTORE are able to serialize / unserialize a simple key (1 ms)
\x1b[0;31;49m[err]\x1b[0m: RESTORE fail with invalid payload size in tests/unit/dump.tcl
Expected 'a' to equal or match 'b'
[ok]: by (a name) with brackets (12 ms)
[ignore]: Active defrag: not supported by this build
[err]: twice in tests/unit/expire.tcl
[ok]: twice (1 ms)
[1/84 done]: unit/dump (2 seconds)
"""
    found = redis.read(text)
    assert states(found) == {
        "DUMP / RESTORE are able to serialize / unserialize a simple key": PASSED,
        "RESTORE fail with invalid payload size": FAILED,
        "by (a name) with brackets": PASSED,
        "Active defrag: not supported by this build": SKIPPED,
        "twice": FAILED,
    }
    assert found["twice"].unit == "unit/expire"


def test_sqlite() -> None:
    text = """--- /x/test/veryquick.test
select1-1.1... Ok
Time: select1.test 12 ms
select2-1.1...
! select2-1.1 expected: [1]
! select2-1.1 got:      [2]
Time: select2.test 3 ms
Time: select3.test 3 ms
1 errors out of 200 tests on host
--- exit code 1
--- /x/test/mallocA.test
mallocA-1.1... Ok
--- /x/test/malloc3.test
--- exit code 139
"""
    assert states(sqlite.read(text)) == {
        "veryquick.test": FAILED, "select1.test": PASSED, "select2.test": FAILED, "select3.test": PASSED,
        "mallocA.test": PASSED, "malloc3.test": FAILED,
    }  # fmt: skip


def test_postgres() -> None:
    text = """test tablespace                   ... ok           72 ms
parallel group (20 tests):  varchar char boolean
     boolean                      ... ok           41 ms
     char                         ... FAILED       27 ms
test event_trigger                ... FAILED (test process exited with exit code 2)      33 ms
"""
    assert states(postgres.read(text)) == {
        "tablespace": PASSED, "boolean": PASSED, "char": FAILED, "event_trigger": FAILED
    }  # fmt: skip


def test_go() -> None:
    text = """go: a word before
{"Action":"run","Package":"runtime/cgo","Test":"TestOne"}
{"Action":"pass","Package":"runtime/cgo","Test":"TestOne","Elapsed":0}
{"Action":"skip","Package":"os/user","Test":"TestTwo","Elapsed":0}
{"Action":"build-fail","ImportPath":"x"}
{"Action":"fail","Package":"os/user","Elapsed":0.01}
{"Action":"pass","Pack
"""
    found = go.read(text)
    assert states(found) == {"runtime/cgo TestOne": PASSED, "os/user TestTwo": SKIPPED, "os/user": FAILED}
    assert found["os/user TestTwo"].unit == "os/user"


def test_automake() -> None:
    text = "PASS: a test\nFAIL: another\n  exit code 1\nUNSUPPORTED: third\nXFAIL: fourth\nFAILED: not one\n"
    assert states(automake.read(text)) == {"a test": PASSED, "another": FAILED, "third": SKIPPED, "fourth": PASSED}


@pytest.fixture
def ready(tmp_path: Path) -> Ready:
    return Ready("1", tmp_path)


def programs(folder: Path, *commands: str) -> None:
    """Suites of programs: each a line of the shell, named after itself."""
    sources.list_programs(folder, [sources.Built(line, ["sh", "-c", line]) for line in commands])


def turn(ready: Ready, folder: Path, seconds: int = 5, limit: float = 20, library: Path | None = None) -> run.Outcome:
    suite = Suite("made up", "", lambda _: ready, sources.each(seconds), automake.read, limit)
    return run.run_turn(suite, ready, library, (), folder / "log")


def test_programs_end_in_each_way(ready: Ready, tmp_path: Path) -> None:
    programs(tmp_path, "exit 0", "exit 77", "exit 3", "kill -SEGV $$", "sleep 30")
    found = turn(ready, tmp_path, seconds=1)
    assert states(found.tests) == {
        "exit 0": PASSED, "exit 77": SKIPPED, "exit 3": FAILED, "kill -SEGV $$": FAILED, "sleep 30": FAILED
    }  # fmt: skip
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert "exit code 3" in said
    assert "exit code -11" in said
    assert "no end after 1 s" in said


def test_what_hangs_is_ended_with_all_that_it_started(ready: Ready, tmp_path: Path) -> None:
    suite = Suite("made up", "", lambda _: ready, lambda *_: [
        "sh", "-c", f"setsid sleep 987 & echo $! >{tmp_path}/pid; echo PASS: one; sleep 987"
    ], automake.read, 1)  # fmt: skip
    found = run.run_turn(suite, ready, None, (), tmp_path / "log")
    assert states(found.tests) == {"one": PASSED, run.WHOLE: FAILED}
    child = int((tmp_path / "pid").read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(child, signal.SIGCONT)


def test_an_end_that_no_test_explains_is_a_failure() -> None:
    passed, failed = {"a": Case(PASSED)}, {"a": Case(FAILED)}
    assert run.judged(passed, "") == passed
    assert run.judged(failed, "exit code 1") == failed
    assert run.WHOLE in run.judged(passed, "exit code 1")
    assert run.WHOLE in run.judged(failed, "no end after 5 s")
    assert run.WHOLE in run.judged({}, "")


def row(plain: Mapping[str, Case], served: Mapping[str, Case], **changes: object) -> run.Row:
    made = run.Row("made up", "1", plain=run.Outcome(dict(plain), 1), served=run.Outcome(dict(served), 2, served=1))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_a_row_says() -> None:
    plain = {"a": Case(PASSED), "b": Case(PASSED), "c": Case(FAILED)}
    assert row(plain, plain).result() == "same"
    assert row(plain, {**plain, "c": Case(PASSED)}).result() == "none lost"
    lost = row(plain, {**plain, "a": Case(FAILED)})
    assert lost.result() == "1 LOST"
    assert row(plain, {"a": Case(PASSED), "c": Case(FAILED)}).lost() == ["b"]  # its run ended before it
    assert replace(lost, again={"a": (PASSED, PASSED)}).result() == "none lost"
    assert replace(lost, again={"a": (PASSED, FAILED)}).result() == "1 LOST"
    assert replace(lost, served=replace(lost.served, served=0)).result() == "NOT SERVED"
    broken = {**plain, run.WHOLE: Case(FAILED)}
    assert row(broken, broken).result() == "BREAKS OFF IN BOTH"
    assert lost.cells() == ["made up", "1", "1 LOST", "2", "1", "1", "2", "0", "0", "1", "2"]
    assert "made up: a: passed without, failed with" in lost.remarks()
    assert "made up: failed in both: c" in lost.remarks()


def test_an_absent_suite_is_told_as_that(tmp_path: Path) -> None:
    def prepare(_: Path) -> Ready:
        raise AbsentError("no sources")

    suite = Suite("made up", "", prepare, sources.each(1), automake.read, 1)
    found = run.run_suite(suite, (), tmp_path / "none", tmp_path, tmp_path)
    assert found.cells()[:4] == ["made up", "-", "not to be had", "-"]
    assert found.remarks() == ["made up: not to be had: no sources"]


def test_sources_that_cannot_be_fetched_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AbsentError, match="apt"):
        sources.debian(tmp_path, "redis")
    script = tmp_path / "fails"
    script.write_text("#!/bin/sh\necho E: not found >&2\nexit 100\n", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(AbsentError, match=r"a step failed: E: not found"):
        sources.must("a step", [str(script)], tmp_path / "log")


def test_a_suite_served_by_us_and_its_table(
    ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert LIBRARY
    served = 'case "$LD_PRELOAD" in *hakozuna*) exit 1 ;; esac'
    programs(tmp_path, "sleep 0.2", served)
    suite = Suite("made up", "", lambda _: ready, sources.each(5), automake.read, 20)
    monkeypatch.setattr(run, "SUITES", {"made up": suite})
    table = tmp_path / "table.md"
    assert run.main(LINE, LIBRARY, tmp_path, str(table), ["made up"]) == 1
    text = table.read_text(encoding="utf-8")
    assert f"| made up | 1 | 1 LOST | {2} | {1} | {0} | {1} | 0 | 0 |" in text
    assert "passed without, failed with; once more: passed without, failed with" in text
    assert "made up  1        1 LOST" in capsys.readouterr().out
    assert run.main(LINE, LIBRARY, tmp_path, "", ["made up:sleep 0.2"]) == 0
    assert "these parts alone: sleep 0.2" in capsys.readouterr().out


def test_a_library_that_is_not_ours(tmp_path: Path) -> None:
    libc = next(Path("/lib").glob("*-linux-gnu/libc.so.6"))
    shutil.copy(libc, tmp_path / "lib.so")
    with pytest.raises(LabError, match="is not of line"):
        run.prove(tmp_path / "lib.so", LINE)


def test_the_environment_differs_by_the_preload_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HZ_STATS", "1")
    monkeypatch.setenv("LD_PRELOAD", "")
    library = tmp_path / "lib.so"
    plain, served = Turn(None, tmp_path).environment(), Turn(library, tmp_path).environment()
    assert "HZ_STATS" not in plain
    assert set(served.items()) - set(plain.items()) == {("LD_PRELOAD", str(library))}


def test_every_suite_has_a_name_and_a_command(ready: Ready, tmp_path: Path) -> None:
    for name, suite in SUITES.items():
        assert suite.name == name
        assert suite.about
        assert suite.command(ready, Turn(None, tmp_path, ("part",)) if name != "postgres" else Turn(None, tmp_path))
    assert SUITES["cpython"].command(ready, Turn(None, tmp_path, ("test_json",)))[-4:] == [
        "-", "test_json", "--once", "plain"
    ]  # fmt: skip
    assert str(sys.executable) in SUITES["glibc"].command(ready, Turn(None, tmp_path))
