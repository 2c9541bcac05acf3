# SPDX-License-Identifier: Apache-2.0
"""`hz bench` from its command line to its table, on a made-up `lane`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hakozuna_lab import LabError, bench
from hakozuna_lab.cli import run
from hakozuna_lab.contender import Contender
from hakozuna_lab.peer_list import PEERS
from hakozuna_lab.peers import Found
from hakozuna_lab.schedule import Session
from hakozuna_lab.selection import Wish
from hakozuna_lab.store import load

pytestmark = pytest.mark.usefixtures("tree", "quiet_machine")


def hz_bench(*arguments: str) -> None:
    run(["bench", *arguments])


def measure(out: Path, *arguments: str) -> None:
    hz_bench("main_r50", "guard_r50", "--threads", "2", "--runs", "2", "--lines", "mine,other", "--peers", "none",
             "--out", str(out), *arguments)  # fmt: skip


def test_records_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.jsonl"
    measure(out, "--env", 'other=FAKE={"ops_per_s": 1e6}', "--seed", "5", "--iterations", "9", "--runs", "5")
    results = load(out)
    assert [run.contender for run in results.runs] == (["mine", "other"] * 2 + ["other", "mine"] * 2) * 2 + [
        *("mine", "other"),
        *("mine", "other"),
    ]
    assert {run.record["definition"]["iterations"] for run in results.runs} == {9}
    assert {run.record["seed"] for run in results.runs} == {5}
    assert results.end is not None and results.end.repeated == 0
    header = results.header
    assert (header.selection.first, header.selection.runs, header.flags) == ("mine", 5, "made up")
    assert [Path(c.library).name for c in header.contenders] == ["libhakozuna-mine.so", "libhakozuna-other.so"]
    assert header.contenders[0].sha256 != header.contenders[1].sha256
    printed = capsys.readouterr().out
    assert "main_r50/T2/fair, memory in MiB" in printed
    assert "mine against the others, rows: ahead 2, level 0, behind 0, unclear 0, refused 0" in printed
    assert max(map(len, printed.splitlines())) <= 100
    written = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert "| main_r50/T2/fair | other | 1.00 M (1.00 M..1.00 M) | 2.000 [2.000..2.000] | ahead |" in written
    assert "iterations per thread: guard_r50/T2/fair 9, main_r50/T2/fair 9" in written
    assert "| main_r50/T2/fair | 2.00 M, 4.0 | 2.00 ahead (1.00) |" in written
    data = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()
    assert data[0].startswith("cell,allocator,ops_per_s,ops_p25,ops_p75,ratio,ratio_low,ratio_high,verdict,peak_mib")
    assert data[2].startswith("guard_r50/T2/fair,other,1000000,1000000,1000000,2,2,2,ahead,4.0")


def test_peers_unless_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that gives each block back at once would make a quick bench a long one."""
    asked: list[str] = []

    def no_peers(names: Sequence[str]) -> list[Contender]:
        asked.extend(names)
        return []

    monkeypatch.setattr(bench, "find_peers", no_peers)
    monkeypatch.setattr(bench, "say_who_is_missing", lambda contenders: None)
    for wish, peers in ((Wish(quick=True), ()), (Wish(), ()), (Wish(quick=True), ("all",)), (Wish(), ("none",))):
        bench.find_contenders(bench.Request(wish, ("mine",), peers))
    assert asked == ["newest", "all", "all"]


def test_a_contender_that_does_not_work_is_known_before_the_first_run(tmp_path: Path) -> None:
    for setting in ('other=FAKE={"allocator_file": "/usr/lib/libc.so.6"}', "other=FAKE_EXIT=-11"):
        with pytest.raises(LabError, match="other does not work here"):
            measure(tmp_path / "x.jsonl", "--env", setting)
    assert not (tmp_path / "x.jsonl").exists()


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("precious", encoding="utf-8")
    with pytest.raises(LabError, match="is there already"):
        measure(tmp_path / "x.jsonl")


def test_an_interrupted_file_is_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results" / "x.jsonl"
    measure(out, "--env", "mine=HZ_RETAIN=200")
    whole = out.read_text(encoding="utf-8").splitlines(keepends=True)
    out.write_text("".join(whole[:4]) + whole[4][:30], encoding="utf-8")
    capsys.readouterr()
    hz_bench("--resume")
    again = load(out)
    assert len(again.runs) == 8
    assert again.end is not None
    assert {run.record["retain"] for run in again.runs if run.contender == "mine"} == {"200"}
    assert "(4 of 8" in capsys.readouterr().err
    with pytest.raises(LabError, match="is complete"):
        hz_bench("--resume", str(out))
    with pytest.raises(LabError, match="--resume takes a file and nothing else"):
        hz_bench("--resume", str(out), "--runs", "7")


def test_going_on_needs_the_same_library_and_program(tmp_path: Path, tree: Path, lane: Path) -> None:
    out = tmp_path / "x.jsonl"
    measure(out)
    out.write_text("".join(out.read_text(encoding="utf-8").splitlines(keepends=True)[:4]), encoding="utf-8")
    (tree / "libhakozuna-other.so").write_bytes(b"changed")
    with pytest.raises(LabError, match=r"libhakozuna-other.so is not the one"):
        hz_bench("--resume", str(out))
    lane.write_text(lane.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.raises(LabError, match="lane is not the one"):
        hz_bench("--resume", str(out))


def test_interrupting_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(session: object, task: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "perform", stop)
    with pytest.raises(LabError, match=r"interrupted; go on with: hz bench --resume .*x.jsonl"):
        measure(tmp_path / "x.jsonl")


def test_what_is_misspelled_is_an_error(tmp_path: Path) -> None:
    cases = [
        (["--lines", "nobody"], "there is no line 'nobody'"),
        (["--env", "nobody=A=1"], "--env nobody=A=1"),
        (["--peer", "x=/no/such.so"], "expected NAME=LIBRARY"),
        (["--peer", f"mine={sys.executable}"], "two contenders have the name mine"),
        (["nothing"], "no lane 'nothing'"),
    ]
    for arguments, message in cases:
        with pytest.raises(LabError, match=message):
            measure(tmp_path / "x.jsonl", *arguments)


def test_the_command_is_told(tmp_path: Path) -> None:
    measure(tmp_path / "x.jsonl", "--env", "mine=A=b c")
    header = json.loads((tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert header["command"].startswith("hz bench main_r50 guard_r50 --threads 2 ")
    assert header["command"].endswith(" --env 'mine=A=b c'")


def test_peers_that_are_not_here_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = [Found(peer, lacks="not built") for peer in PEERS[1:3]]
    monkeypatch.setattr(bench, "find", lambda peer: next((one for one in lacking if one.peer is peer), Found(peer)))
    bench.say_who_is_missing([Contender(f"{PEERS[1].name}+setting", None)])
    assert capsys.readouterr().err == f"hz: without {PEERS[2].name}: not built\n"
