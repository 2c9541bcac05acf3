# SPDX-License-Identifier: Apache-2.0
"""The picture of a page of programs: what is read from the page, and that README's is that of its page."""

import re
from pathlib import Path

import pytest
from hakozuna_lab import LabError, overview
from hakozuna_lab.overview import Measured
from hakozuna_lab.paths import ROOT

HEAD = "| cell | allocator | ops/s: median (p25..p75) | hakozuna is | peak MiB |\n| --- | --- | --- | --- | --- |\n"
ROWS = """| a/b | hakozuna | 1.50 M (1.00 M..2.00 M) | - | 10.0 |
| a/b | glibc | 750.00 k (1.00 k..2.00 k) | ahead | 20.0 |
| c/d | hakozuna | 0.5 (0.4..0.6) | - | 5.0 |
| c/d | glibc | 0.25 | ahead | 4.0 |
"""


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_are_read(tmp_path: Path) -> None:
    text = f"# Page\n\n| program | ratio |\n|---|---|\n| a/b | 3 |\n\n{HEAD}{ROWS}\nEnd.\n"
    assert overview.read(page(tmp_path, text)) == {
        "a/b": {"hakozuna": Measured(1.5e6, 10), "glibc": Measured(7.5e5, 20)},
        "c/d": {"hakozuna": Measured(0.5, 5), "glibc": Measured(0.25, 4)},
    }


def test_rows_of_a_file_that_the_page_links_are_read(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    data = "cell,allocator,ops_per_s,peak_mib,failed\na/b,hakozuna,1.5e+06,10.0,\na/b,glibc,,,crashed\n"
    data += "c/d,hakozuna,0.5,5.0,\nc/d,glibc,0.25,4.0,\n"
    (tmp_path / "rows/x.csv").write_text(data.replace("a/b,glibc,,,crashed", "a/b,glibc,7.5e5,20.0,"), encoding="utf-8")
    found = overview.read(page(tmp_path, "# Page\n\n[all rows](rows/x.csv)\n"))
    assert found["a/b"] == {"hakozuna": Measured(1.5e6, 10), "glibc": Measured(7.5e5, 20)}
    (tmp_path / "rows/x.csv").write_text(data, encoding="utf-8")
    with pytest.raises(LabError, match="a/b has no row of glibc"):
        overview.read(page(tmp_path, "# Page\n\n[all rows](rows/x.csv)\n"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD + ROWS.replace("glibc", "other"), "a/b has no row of glibc"),
        (HEAD + ROWS.replace("0.25", "refused"), "'refused' is no number of operations"),
    ],
)
def test_what_no_picture_can_be_made_of(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        overview.read(page(tmp_path, text))


def test_the_picture_has_every_ratio(tmp_path: Path) -> None:
    text = overview.make(page(tmp_path, HEAD + ROWS), tmp_path)[0].read_text(encoding="utf-8")
    tips = re.findall("<title>(.*?)</title>", text)
    assert sorted(tips) == [
        "a/b, hakozuna: 0.50 of glibc",
        "a/b, hakozuna: 2.00 of glibc",
        "c/d, hakozuna: 1.25 of glibc",
        "c/d, hakozuna: 2.00 of glibc",
    ]


def test_a_page_without_tables_has_no_picture(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="there is no table"):
        overview.make(page(tmp_path, "# Page\n"), tmp_path)


@pytest.mark.parametrize("kind", ["overview", "memory"])
def test_the_pictures_of_the_readme_are_those_of_their_pages(tmp_path: Path, kind: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.findall(rf"\((doc/results/[^)]*)-{kind}\.svg\)", readme)
    assert names
    for name in names:
        (made,) = overview.make(ROOT / f"{name}.md", tmp_path)
        assert made.read_bytes() == (ROOT / f"{name}-{kind}.svg").read_bytes()
