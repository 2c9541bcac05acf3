# SPDX-License-Identifier: Apache-2.0
"""`hz tune`: what is read out of profiles, which one counts, and what is told; and once a program, in earnest."""

import sys
from pathlib import Path

import pytest
from hakozuna_lab import LabError, measure, tune
from hakozuna_lab.contender import find_line
from hakozuna_lab.findings import Measured
from hakozuna_lab.watch import Watch

TEXT = """hakozuna-profile 1
line hakozuna
program cook
preset small
windows 800 busy 3
peak 41943040 blocks 31457280 waiting 0 cached 1048576 spans 8388608 dirty 1048576
class 1040 saves 2097152
slot 1024 spans 16
slot 1152 spans 320
size 1040 slots 900
size 1152 slots 100
sum 0
"""


def run(peak_mib: float, seconds: float = 1.0, code: int = 0) -> Measured:
    return Measured(seconds, code, int(peak_mib * 1024), Watch(0), 0.0)


def test_reads_what_a_heap_wrote() -> None:
    profile = tune.read(TEXT)
    assert (profile.program, profile.classes, profile.saves) == ("cook", {1040: 2097152}, 2097152)
    assert profile.spans == {1024: 16, 1152: 320}
    assert profile.bytes == 336 * 65536
    assert (profile.small, profile.busy) == (True, (3, 800))


def test_what_is_no_profile_is_refused() -> None:
    with pytest.raises(LabError, match="no profile"):
        tune.read("hakozuna-profile 2\n")
    with pytest.raises(LabError, match="no process wrote"):
        tune.best([])


def test_the_process_that_would_save_most_counts() -> None:
    large = tune.read(TEXT.replace("class 1040 saves 2097152\n", "").replace("spans 16", "spans 9999"))
    small = tune.read(TEXT)
    assert tune.best([large, small]) is small
    other = tune.read(TEXT.replace("class 1040 saves 2097152\n", ""))
    assert tune.best([other, large]) is large


def test_tells_classes_by_what_they_held() -> None:
    rows = tune.waste(tune.read(TEXT))
    assert [row.split()[:4] for row in rows] == [["1,152", "20.0", "1,040", "8.8"], ["1,024", "1.0", "-", "-"]]


def test_tells_why_it_was_large() -> None:
    assert [line.split()[:3] for line in tune.causes(tune.read(TEXT))[1:-1]] == [
        ["30.0", "in", "blocks,"],
        ["8.0", "free", "in"],
        ["1.0", "at", "most,"],
        ["0.0", "waiting", "for"],
        ["1.0", "free,", "not"],
    ]
    assert not tune.causes(tune.read("hakozuna-profile 1\n"))


def test_spans_of_large_slots_are_longer() -> None:
    profile = tune.read("hakozuna-profile 1\nslot 1048576 spans 200\nslot 98304 spans 10\nslot 65536 spans 3\n")
    assert [profile.held(slot) >> 10 for slot in (1048576, 98304, 65536)] == [200 << 10, 10 * 128, 3 * 64]
    assert tune.waste(profile)[0].split()[0] == "1,048,576"


def test_the_callers_own_settings_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HZ_PROFILE", "old")
    monkeypatch.setenv("HZ_POLICY", "observe")
    env = tune.Tuning(["true"], Path("/x.so"), measure.Input(), None).plain()
    assert not {"HZ_POLICY", "HZ_PROFILE"} & env.keys()


def test_tells_what_was_measured() -> None:
    pairs = [(run(100), run(80, 1.1)), (run(101), run(81, 0.9)), (run(102), run(82))]
    text = "\n".join(tune.told("cook soup", tune.read(TEXT), Path("/x/cook.hzprofile"), 0, pairs))
    assert "a class of 1,040 bytes would save 2.0 MiB" in text
    assert "no class of its own" not in text
    assert "peak 101.0 MiB without, 81.0 with it (0.802); time 1.000 (0.900..1.100)" in text
    assert "HZ_PROFILE=/x/cook.hzprofile" in text


def test_tells_that_there_is_nothing_to_gain() -> None:
    profile = tune.read(TEXT.replace("class 1040 saves 2097152\n", "").replace("preset small\n", ""))
    assert not profile.acts
    assert "Nothing to gain" in tune.told("cook", profile, Path("x"), 0, [])[-1]


def test_a_preset_alone_is_measured_too() -> None:
    profile = tune.read(TEXT.replace("class 1040 saves 2097152\n", ""))
    text = "\n".join(tune.told("cook", profile, Path("x"), 0, [(run(100), run(90))]))
    assert "busy in the allocator in 3 of 800 windows" in text
    assert "may hold little (preset small)" in text
    assert "peak 100.0 MiB without, 90.0 with it" in text


def test_runs_that_end_otherwise_are_not_compared() -> None:
    text = tune.told("cook", tune.read(TEXT), Path("x"), 0, [(run(100), run(1, code=3))])
    assert "the program ended with 0, 3" in text[-1]
    assert not any("peak" in line for line in text)


def test_a_program_in_earnest(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    try:
        line = find_line("hakozuna")
    except LabError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PYTHONMALLOC", "malloc")
    monkeypatch.setenv("HZ_LEARN_CLASSES", "0")  # by itself the heap would give the class, only later
    out = tmp_path / "python.hzprofile"
    program = [sys.executable, "-c", "kept = [bytes(1000) for _ in range(20000)]"]
    assert tune.main(program, line, 1, tmp_path / "log", False, out) == 0
    told = capsys.readouterr().out
    assert "a class of 1,040 bytes would save" in told
    before, after = told.split("peak ")[1].split(" with it")[0].split(" MiB without, ")
    assert float(after) < float(before) - 1
    assert "class 1040 saves" in out.read_text(encoding="utf-8")
