# SPDX-License-Identifier: Apache-2.0
"""hz bench --count: a real program is counted, and who served it is proved; what is made of counts; what is
refused."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hakozuna_lab import LabError, RunError, cli, count
from hakozuna_lab.contender import Contender, find_line, line_names
from hakozuna_lab.count import Cost
from hakozuna_lab.counted import COUNTED, write_inputs

OURS = find_line(line_names()[0])
C_LIBRARY = Contender("glibc", None)
COSTS: count.Costs = {
    "perl": {"ours": Cost(1000, 100), "one": Cost(1100, 110), "two": Cost(950, 400)},
    "jq": {"ours": Cost(2000, 100), "one": Cost(2100, 50), "two": "failed: ended with -6"},
}
CONTENDERS = [Contender(name, None) for name in ("ours", "one", "two")]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_program_is_counted() -> None:
    counts = [count.count(COUNTED["perl"], contender) for contender in (OURS, C_LIBRARY)]
    assert 0.8 < counts[0] / counts[1] < 1.25
    assert min(counts) > 50e6


def test_a_cost_has_the_median_of_peaks_and_a_failure_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def peak(_: object, contender: Contender) -> int:
        order.append(contender.name)
        if contender.name == "one":
            raise RunError("no memory")
        return len(order)

    def counts(_: object, contender: Contender) -> int:
        if contender.name == "two":
            raise RunError("ended with -6")
        return 7

    monkeypatch.setattr(count, "peak_kib", peak)
    monkeypatch.setattr(count, "count", counts)
    costs = count.measure(COUNTED["perl"], CONTENDERS)
    assert costs == {"ours": Cost(7, 8), "one": "failed: no memory", "two": "failed: ended with -6"}
    assert order[:7] == ["ours", "one", "two", "two", "ours", "two", "ours"]
    assert len(order) == 2 * count.PEAK_RUNS + 1


def test_a_library_that_serves_nothing_is_an_error() -> None:
    libm = next(Path("/lib").glob("*/libm.so.6"))
    with pytest.raises(LabError, match="asked for"):
        count.peak_kib(COUNTED["perl"], Contender("none", libm))


def test_inputs_are_the_same_each_time(tmp_path: Path) -> None:
    texts = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_inputs(tmp_path / name)
        texts.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 4


@pytest.mark.parametrize("name", COUNTED)
def test_every_program_does_its_work(name: str) -> None:
    """Without callgrind, under the default line and under the C library, with which not all of them are linked."""
    if reason := COUNTED[name].program.available():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        for contender in (C_LIBRARY, OURS):
            record = COUNTED[name].program.run(contender, f"{name}/once", Path(folder))
    assert record["version"]
    assert record["rss_peak_kib"] > 1000


def test_a_total_is_read_or_missed() -> None:
    assert count.totals("events: Ir\nfn=(1) main\n7 12\ntotals: 123456\n") == 123456
    with pytest.raises(LabError):
        count.totals("events: Ir\n")


def test_ratios_are_of_programs_that_both_could_run() -> None:
    assert count.ratios(COSTS, "ours", "one") == [1.1, 1.05]
    assert count.ratios(COSTS, "ours", "two") == [0.95]
    assert count.best_of_others(COSTS["perl"], "ours") == 0.95
    assert count.best_of_others({"ours": Cost(1, 1)}, "ours") is None


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    text = count.document(COSTS, [COUNTED["perl"]], CONTENDERS, "hz bench --count")
    assert "| perl | 0.0, 0.1 | 1.100 (1.10) | 0.950 (4.00) | 0.950 |" in text
    assert "| jq | 0.0, 0.1 | 1.050 (0.50) | failed: ended with -6 | 1.050 |" in text
    assert "| mean |  | 1.075 | 0.950 | 0.999 |" in text
    assert "| least |  | 1.050 | 0.950 | 0.950 |" in text
    count.show(COSTS, CONTENDERS)
    assert "failed: ended with -6" in capsys.readouterr().out


def test_one_contender_alone_has_no_ratios() -> None:
    costs = {"perl": {"ours": Cost(2_000_000, 2048)}}
    text = count.document(costs, [COUNTED["perl"]], CONTENDERS[:1], "hz bench --count")
    assert text.endswith("| --- | --- |\n| perl | 2.0, 2.0 |\n")


def test_what_is_not_known_or_not_of_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="there is no program 'emacs'"):
        count.choose(["emacs"])
    monkeypatch.setattr("sys.argv", ["hz", "bench"])
    with pytest.raises(LabError, match="no use for --runs"):
        cli.run(["bench", "--count", "--runs", "3"])


def test_those_that_are_not_here_are_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == "jq" else f"/usr/bin/{name}")
    assert [one.name for one in count.choose(["programs"])] == [name for name in COUNTED if name != "jq"]
    assert "hz: without jq: jq missing" in capsys.readouterr().err
    with pytest.raises(LabError, match="jq missing"):
        count.choose(["jq"])


def test_a_program_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(count, "measure", lambda *_: {one.name: "failed: ended with -6" for one in CONTENDERS})
    count.measure_all([COUNTED["perl"]], CONTENDERS, tmp_path / "out.md", "hz bench --count")
    assert "| perl | failed: ended with -6 |" in (tmp_path / "out.md").read_text(encoding="utf-8")


def test_scripts_are_all_used() -> None:
    folder = Path(count.__file__).parent / "counted"
    used = {word for one in COUNTED.values() for word in (*one.arguments, one.stdin)}
    scripts = {path.name for path in folder.iterdir() if path.suffix not in ("", ".py", ".pyc")} | {"followers.py"}
    assert scripts <= used
    assert os.access(folder / "followers.py", os.R_OK)
