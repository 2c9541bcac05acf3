# SPDX-License-Identifier: Apache-2.0
"""Memory over time: what becomes of samples in the table, and of the table in the picture."""

from dataclasses import replace
from pathlib import Path

import made_up
import pytest
from hakozuna_lab import LabError, aftermath, overview
from hakozuna_lab.store import Cell, load

RECORD = {"load_ended": 1.0, "rss_series": [(0.0, 1024), (0.9, 2048), (1.4, 4096), (2.0, 1024)]}
TABLE = """| seconds after the load | hakozuna | glibc |
| --- | --- | --- |
| -0.5 | 10.0 | 20.0 |
| 0 | 5.0 | 20.0 |
"""


def test_the_last_sample_counts() -> None:
    assert [aftermath.at(RECORD, second) for second in (-1.5, -1, -0.2, 0, 0.4, 0.99, 1.01)] == [
        None, 1, 1, 2, 4, 4, None,
    ]  # fmt: skip


def test_rows_are_medians_where_all_were_watched() -> None:
    longer = {"load_ended": 1.5, "rss_series": [(0.0, 3072), (3.0, 3072)]}
    assert aftermath.rows({"a": [RECORD, RECORD, longer], "b": [longer]}) == [
        ["-1", "1.0", "3.0"],
        ["-0.5", "1.0", "3.0"],
        ["0", "2.0", "3.0"],
        ["0.5", "4.0", "3.0"],
        ["1", "1.0", "3.0"],
    ]


def test_only_what_was_to_settle_has_a_table(tmp_path: Path) -> None:
    cell = Cell("program", "redis/set")
    for settle, tables in ((None, 0), (2000, 1)):
        file = made_up.write(tmp_path / f"{settle}.jsonl", ["hz3", "glibc"], [replace(cell, settle=settle)])
        made = aftermath.markdown(load(file))
        assert len(made) == 2 * tables
    assert made[1].startswith("| seconds after the load | hz3 | glibc |\n| --- | --- | --- |\n| -2.5 | ")


def test_a_page_is_read_and_drawn(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{TABLE}\nEnd.\n", encoding="utf-8")
    assert aftermath.read(page) == {"hakozuna": [(-0.5, 10), (0, 5)], "glibc": [(-0.5, 20), (0, 20)]}
    (picture,) = overview.make(page, tmp_path)
    assert picture.name == "page-memory.svg"
    assert "glibc, seconds after the load 0: 20 MiB" in picture.read_text(encoding="utf-8")


def test_what_is_no_number_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(TABLE.replace("5.0", "refused"), encoding="utf-8")
    with pytest.raises(LabError, match="refused"):
        aftermath.read(page)
