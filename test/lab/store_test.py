# SPDX-License-Identifier: Apache-2.0
"""Stored results: what is written is read back, an interrupted file is read, a broken one refused."""

from pathlib import Path

import pytest
from hakozuna_lab import LabError
from hakozuna_lab.store import Cell, End, Header, Run, Selection, StoredContender, append, load

CELL = Cell("lane", "guard_r50", 2, "fair")
HEADER = Header(
    id="one",
    commit="c0ffee",
    changed=False,
    cpu="a CPU",
    cpus=2,
    kernel="6.1",
    thp="always",
    governor="unknown",
    load_before="0.00",
    flags="-O2",
    program_sha256="00",
    contenders=[StoredContender("hz3", "/x.so", "00", {"HZ_RETAIN": "200"}, "1")],
    selection=Selection(["guard_r50"], [2], ["fair"], 7, "hz3", [CELL]),
    command="hz bench",
)
RUN = Run("lane", CELL.id, "hz3", 0, 1, 0.01, False, {"ops_per_s": 1.5})


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for entry in (HEADER, RUN, End("1.00", 3)):
        append(path, entry)
    results = load(path)
    assert (results.header, results.runs, results.end) == (HEADER, [RUN], End("1.00", 3))


def test_an_interrupted_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    append(path, HEADER)
    append(path, RUN)
    with path.open("a", encoding="utf-8") as out:
        out.write('{"type": "run", "kind": "la')
    assert (load(path).runs, load(path).end) == ([RUN], None)


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text, message in (("", "holds no results"), ("banana\n", "x.jsonl:1: not a line"), ("{}\n", "x.jsonl:1:")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(LabError, match=message):
            load(path)
    path.unlink()
    append(path, RUN)
    with pytest.raises(LabError, match="does not begin with a header"):
        load(path)
    with pytest.raises(LabError, match="No such file"):
        load(tmp_path / "nothing")


def test_ids_of_cells() -> None:
    assert CELL.id == "guard_r50/T2/fair"
    assert Cell("lane", "main_r50", 16, "fair", remote=25, iterations=9).id == "main_r50/T16/fair/R25"
    assert Cell("lane", "main_r50", 16, "fair", touched=False).id == "main_r50/T16/fair/untouched"
    assert Cell("lane", "main_r50", 16, "fair", written=True).id == "main_r50/T16/fair/written"
    assert Cell("lane", "main_r50", 16, "fair", settle=1000).id == "main_r50/T16/fair/settle1000"
    assert Cell("program", "redis/lists", settle=9000).id == "redis/lists/settle9000"
    assert Cell("program", "redis/set").id == "redis/set"
