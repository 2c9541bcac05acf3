# SPDX-License-Identifier: Apache-2.0
"""hz coverage: what llvm-cov says of a header that two files compile is one account of it; and the page that explains
what no test reaches names what is there."""

import re
from pathlib import Path
from typing import Any

import pytest
from hakozuna_lab import coverage
from hakozuna_lab.paths import ROOT

HEADER = """#define LIKELY(x) __builtin_expect(bool(x), 1)

namespace hz {

template <int kind>
struct Box {
  static int take(int n) {
    if constexpr (kind == 2) {
      // Of the second alone.
      return n + 1;
    }
    if (LIKELY(n > 0 && n < 9)) return n;
    n += 1;
    return [n] {
      if (n == 7) return 1;
      return 2;
    }();
  }

  static int never() {
    return kind;
  }
};

}  // namespace hz
"""
ONE = """#include "box.hpp"
int one(int n) { return n == 5 ? hz::Box<1>::never() : hz::Box<1>::take(n); }
"""
# As llvm-cov 14 exports it. one.cpp was compiled with paths from the root of the tree; a test called one(-1), one(3)
# and take(1) of Box<2>.
FUNCTIONS: list[tuple[str, list[str], list[list[int]], list[list[int]]]] = [
    ("main", ["/tree/test/main.cpp"], [], [[3, 12, 3, 67, 1, 0, 0, 0]]),
    (
        "_ZN2hz3BoxILi2EE4takeEi",
        ["/tree/src/box.hpp", "/tree/src/box.hpp"],
        [[1, 19, 1, 47, 0, 0, 1, 0, 4], [1, 41, 1, 42, 0, 0, 1, 0, 4], [1, 41, 1, 42, 0, 0, 1, 0, 4]],
        [
            *([7, 26, 18, 4, 1, 0, 0, 0], [8, 19, 8, 28, 1, 0, 0, 0], [8, 29, 8, 30, 1, 0, 0, 3]),
            *([8, 30, 11, 6, 1, 0, 0, 0], [9, 1, 9, 30, 0, 0, 0, 2], [11, 6, 12, 5, 0, 0, 0, 3]),
            *([12, 5, 18, 4, 0, 0, 0, 0], [12, 9, 12, 15, 0, 0, 1, 1], [12, 32, 12, 33, 0, 0, 0, 3]),
            *([12, 33, 12, 41, 0, 0, 0, 0], [12, 42, 13, 5, 0, 0, 0, 3]),
            *([13, 5, 17, 8, 0, 0, 0, 0], [1, 19, 1, 47, 0, 1, 0, 0], [1, 41, 1, 42, 0, 1, 0, 0]),
            [1, 41, 1, 42, 0, 1, 0, 0],
        ],
    ),
    (
        "_Z3onei",
        ["./src/one.cpp"],
        [[2, 25, 2, 31, 0, 2, 0, 0, 4]],
        [
            *([2, 16, 2, 78, 2, 0, 0, 0], [2, 25, 2, 31, 2, 0, 0, 0], [2, 33, 2, 34, 0, 0, 0, 3]),
            *([2, 34, 2, 53, 0, 0, 0, 0], [2, 56, 2, 75, 2, 0, 0, 0]),
        ],
    ),
    ("_ZN2hz3BoxILi1EE5neverEv", ["./src/box.hpp"], [], [[20, 22, 22, 4, 0, 0, 0, 0]]),
    (
        "_ZN2hz3BoxILi1EE4takeEi",
        ["./src/box.hpp", "./src/box.hpp"],
        [[1, 19, 1, 47, 1, 1, 1, 0, 4], [1, 41, 1, 42, 1, 1, 1, 0, 4], [1, 41, 1, 42, 1, 0, 1, 0, 4]],
        [
            *([7, 26, 18, 4, 2, 0, 0, 0], [8, 19, 8, 28, 2, 0, 0, 0], [8, 29, 8, 30, 0, 0, 0, 3]),
            *([8, 30, 8, 31, 0, 0, 0, 0], [9, 1, 9, 30, 0, 0, 0, 2], [12, 9, 12, 15, 2, 0, 1, 1]),
            *([12, 32, 12, 33, 1, 0, 0, 3], [12, 33, 12, 41, 1, 0, 0, 0], [12, 42, 14, 5, 1, 0, 0, 3]),
            *([13, 1, 13, 1, 0, 0, 0, 2], [14, 5, 17, 8, 1, 0, 0, 0], [1, 19, 1, 47, 2, 1, 0, 0]),
            *([1, 41, 1, 42, 2, 1, 0, 0], [1, 41, 1, 42, 1, 1, 0, 0]),
        ],
    ),
    (
        "_ZZN2hz3BoxILi1EE4takeEiENKUlvE_clEv",
        ["./src/box.hpp"],
        [[15, 11, 15, 17, 0, 1, 0, 0, 4]],
        [
            *([14, 16, 17, 6, 1, 0, 0, 0], [15, 11, 15, 17, 1, 0, 0, 0], [15, 18, 15, 19, 0, 0, 0, 3]),
            *([15, 19, 15, 27, 0, 0, 0, 0], [15, 28, 16, 7, 1, 0, 0, 3], [16, 7, 16, 15, 1, 0, 0, 0]),
        ],
    ),
]


def export(*chosen: str) -> dict[str, Any]:
    functions = [
        {"name": name, "filenames": files, "branches": branches, "regions": regions}
        for name, files, branches, regions in FUNCTIONS
        if not chosen or name in chosen
    ]
    return {"data": [{"functions": functions}]}


@pytest.fixture
def found() -> dict[str, coverage.Source]:
    return coverage.merge([export()], Path("/tree"))


def test_a_line_is_reached_if_any_instance_is(found: dict[str, coverage.Source]) -> None:
    assert list(found) == ["src/box.hpp", "src/one.cpp"]
    reached = coverage.lines(found["src/box.hpp"], HEADER)
    assert reached == {
        7: True,
        8: True,
        10: True,
        12: True,
        13: True,
        14: True,
        15: True,
        16: True,
        20: False,
        21: False,
    }


def test_what_one_instance_leaves_out_another_one_has() -> None:
    first = coverage.merge([export("_ZN2hz3BoxILi1EE4takeEi")], Path("/tree"))["src/box.hpp"]
    second = coverage.merge([export("_ZN2hz3BoxILi2EE4takeEi")], Path("/tree"))["src/box.hpp"]
    assert coverage.lines(first, HEADER)[13]
    assert not coverage.lines(second, HEADER)[13]
    assert coverage.lines(second, HEADER)[10]


def test_a_lambda_that_is_not_called_is_not_reached() -> None:
    functions = export()["data"][0]["functions"]
    functions[-1]["regions"] = [[*region[:4], 0, *region[5:]] for region in functions[-1]["regions"]]
    source = coverage.merge([{"data": [{"functions": functions}]}], Path("/tree"))["src/box.hpp"]
    assert [number for number, run in coverage.lines(source, HEADER).items() if not run] == [15, 16, 20, 21]


def test_a_block_that_is_left_out_is_not_reached() -> None:
    functions = [one for one in export()["data"][0]["functions"] if "take" in one["name"]]
    functions[0]["regions"] = [[*region[:4], 0, *region[5:]] for region in functions[0]["regions"]]
    source = coverage.merge([{"data": [{"functions": functions}]}], Path("/tree"))["src/box.hpp"]
    assert [number for number, run in coverage.lines(source, HEADER).items() if not run] == [10]


def test_the_order_of_what_is_merged_is_indifferent() -> None:
    exports = [export(name) for name, *_ in FUNCTIONS]
    forwards, backwards = (coverage.merge(given, Path("/tree")) for given in (exports, reversed(exports)))
    assert forwards == backwards == coverage.merge([export()], Path("/tree"))


def test_each_use_of_a_macro_has_branches_of_its_own(found: dict[str, coverage.Source]) -> None:
    branches = found["src/box.hpp"].branches
    use = (12, 9, 12, 15)
    assert {place[-2:]: sides for place, sides in branches.items() if place[0] == use} == {
        ((1, 19, 1, 47), (1,)): (True, True),
        ((1, 41, 1, 42), (1,)): (True, True),
        ((1, 41, 1, 42), (2,)): (True, False),
    }
    assert branches[((15, 11, 15, 17), (1,))] == (False, True)


def test_the_account_names_functions(found: dict[str, coverage.Source], tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/box.hpp").write_text(HEADER, encoding="utf-8")
    (tmp_path / "src/one.cpp").write_text(ONE, encoding="utf-8")
    header, source = coverage.accounts(found, tmp_path)
    assert header.missed == {"Box::never": [20, 21]}
    assert header.one_way == {"Box::take": [12, 15]}
    assert (header.figures, source.figures) == ((8, 10, 6, 8), (1, 1, 1, 2))
    assert coverage.sums([header, source]) == [("src", (9, 11, 7, 10)), ("src", (9, 11, 7, 10))]
    assert coverage.table([("src", (9, 11, 7, 10))])[-1] == "| src | 9 / 11 | 81.8 % | 7 / 10 | 70.0 % |"
    assert coverage.listing([header, source], {("src/box.hpp", "Box::never")}, True)[1:] == [
        "not reached",
        "",
        "not reached, as doc/coverage.md says",
        "  src/box.hpp  Box::never  20-21",
        "",
        "branches that always went the same way",
        "  src/box.hpp  Box::take  12, 15",
        "  src/one.cpp  one  2",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hz::Heap<hz::Hakozuna>::malloc(unsigned long)", "Heap::malloc"),
        ("void hz::(anonymous namespace)::write<int>(hz::Box<3, hz::Box<1> > const&)", "write"),
        ("operator new[](unsigned long, std::align_val_t)", "operator new[]"),
        ("hz::Row<hz::A>::operator()(int) const", "Row::call"),
        ("malloc", "malloc"),
    ],
)
def test_names_are_short(name: str, said: str) -> None:
    assert coverage.short(name) == said


@pytest.mark.parametrize(("numbers", "said"), [([], ""), ([3], "3"), ([1, 3, 4, 5, 9, 10], "1, 3-5, 9-10")])
def test_ranges(numbers: list[int], said: str) -> None:
    assert coverage.ranges(numbers) == said


def test_a_hundred_percent_is_all() -> None:
    assert (coverage.share(9999, 10000), coverage.share(7, 7), coverage.share(0, 0)) == ("99.9 %", "100.0 %", "")


def test_the_page_names_functions_that_are_there() -> None:
    names = coverage.explained()
    assert names
    for file, name in sorted(names):
        last = name.split("::")[-1]
        assert re.search(rf"(?<!\w){re.escape(last)}(?!\w)", (ROOT / file).read_text(encoding="utf-8")), (file, name)
