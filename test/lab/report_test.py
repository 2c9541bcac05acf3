# SPDX-License-Identifier: Apache-2.0
"""The report's numbers and files; test/lab/page_test.py looks at the page itself."""

import re
from pathlib import Path
from xml.etree import ElementTree

import made_up
import pytest
from hakozuna_lab import LabError, plots, report
from hakozuna_lab.cells import cell_rows
from hakozuna_lab.palette import THEME
from hakozuna_lab.rows import Row
from hakozuna_lab.stats import Estimate, Quartiles
from hakozuna_lab.store import load


def test_bars() -> None:
    assert report.bar(1, 4) == (50, 50)
    assert report.bar(0.5, 2) == (25, 50)
    assert report.bar(1, 1) == (50, 2)
    assert report.bar(8, 9) == (98, 2)
    assert report.bar(0.1, 0.2) == (0, 2)
    assert report.bars(Estimate(0.5, 0.25, 1)) == [("median", (25, 25)), ("interval", (0, 50))]
    assert report.bars(None) == []


def test_marks() -> None:
    rows = [Row("c", "hz3", 4, dirty=1), Row("c", "a", 4, dirty=1, disturbed=3, failed="signal 11"), None]
    assert report.marks(rows) == "a failed: signal 11, 2 dirty, 3 disturbed"
    assert report.marks([Row("c", "hz3", 4)]) == ""


def test_memory_pairs() -> None:
    ours = Row("c", "hz3", 4, peak_kib=2048, idle_kib=1536, after_kib=512)
    assert report.memory_pairs(ours, Row("c", "a", 4, peak_kib=1024)) == ["2.0 / 1.0", "1.5 / -", "0.5 / -"]


def test_scores() -> None:
    summary = [
        {"line": line, "verdict": word}
        for line, word in (("a", "ahead"), ("a", "behind"), ("b", "refused"), ("b", "unclear"))
    ]
    counts = [dict(score["counts"]) for score in report.scores(["a", "b"], summary)]
    none = {"ahead": 0, "level": 0, "behind": 0, "unclear": 0}
    assert counts == [none | {"ahead": 1, "behind": 1}, none | {"unclear": 1, "refused": 1}]


def test_colors_of_ratios() -> None:
    for ratio, verdict, color in (
        (1.05, "ahead", "ahead1"),
        (1.3, "ahead", "ahead2"),
        (2.5, "ahead", "ahead4"),
        (0.95, "behind", "behind1"),
        (0.6, "behind", "behind3"),
        (0.4, "behind", "behind4"),
        (1.005, "level", "level"),
        (1.3, "unclear", "page"),
        (1.3, "refused", "page"),
    ):
        assert plots.heat_color(plots.Heat(ratio, verdict, "")) == THEME[color][0]


def test_no_verdict_without_pairs(tmp_path: Path) -> None:
    (one,) = cell_rows([load(made_up.write(tmp_path / "x.jsonl", ["hz3", "scudo"], made_up.CELLS[:1]))])
    row = report.summary_row(one, "hz3")
    assert (row["other"], row["ratio"], row["verdict"]) == ("-", None, "refused")
    assert one.ours["hz3"].speed != Quartiles(0, 0, 0)


def test_what_there_is_no_report_of(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="none of our lines"):
        report.make([made_up.write(tmp_path / "a.jsonl", ["glibc"], made_up.CELLS[:1])], tmp_path)
    with pytest.raises(LabError, match="no run"):
        report.make([made_up.write(tmp_path / "b.jsonl", ["hz3"], made_up.CELLS[:1], rounds=0)], tmp_path)


def test_warnings(tmp_path: Path) -> None:
    files = [load(made_up.write(tmp_path / name, ["hz3"], made_up.CELLS[:1])) for name in ("a.jsonl", "b.jsonl")]
    assert report.warnings(files) == []
    files[0].end = None
    object.__setattr__(files[1].header.contenders[0], "sha256", "another")
    object.__setattr__(files[1].runs[2], "disturbed", True)
    assert report.warnings(files) == [
        "a.jsonl was interrupted; what is there is shown",
        "in b.jsonl others disturbed 1 of the 6 runs that count",
        "hz3 is not the same library in all files",
    ]


def test_every_cell_has_its_rows_and_pictures(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = {path.stem for path in page.parent.glob("*.png")}
    assert names == {path.stem for path in page.parent.glob("*.svg")}
    assert {f"memory-{cell.id}".replace("/", "-") for cell in made_up.CELLS} < names
    others = {"heat-hz3", "heat-hz3-fast", "threads-guard_r50-fair", "remote-guard-T2-fair", "time-redis-set"}
    assert others < names
    assert text.count("<svg") == len(names)
    for cell in made_up.CELLS:
        for line in ("hz3", "hz3-fast"):
            assert f"<tr><td>{cell.id}<td>{line}<" in text
    for one in map(made_up.contender, made_up.NAMES):
        assert one.sha256 in text
    assert "1 of 463 runs disturbed" in text
    assert "git checkout c0ffee\n./hz bench --quick\n./hz report\n" in text


def test_pictures_follow_the_scheme(page: Path) -> None:
    for path in page.parent.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        ElementTree.fromstring(text)
        body = re.sub("<style>.*?</style>", "", text, flags=re.DOTALL)
        assert not re.findall("#[0-9a-f]{6}", body)
    assert "prefers-color-scheme: dark" in text


def test_names_are_escaped(tmp_path: Path) -> None:
    path = made_up.write(tmp_path / "x.jsonl", ["hz3", "<i>&amp;"], made_up.CELLS[:1], rounds=1)
    text = report.make([path], tmp_path / "out").read_text(encoding="utf-8")
    assert "&lt;i&gt;&amp;amp;" in text
    assert "<i>&amp;" not in text
