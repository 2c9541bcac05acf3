# SPDX-License-Identifier: Apache-2.0
"""From runs to rows and tables: known numbers; dirty and failed runs refuse theirs and are shown."""

import io
from dataclasses import replace
from pathlib import Path

import fakes
import pytest
from hakozuna_lab.rows import Row, better_settings, make_rows
from hakozuna_lab.stats import Estimate, Quartiles
from hakozuna_lab.store import Cell, End, Results, Run
from hakozuna_lab.tables import (
    TEXT_COLUMNS,
    WIDE_COLUMNS,
    compact,
    conditions,
    headings,
    latency_markdown,
    markdown,
    nanoseconds,
    operations,
    rich_latency,
    rich_tables,
    verdict_counts,
)
from rich.console import Console

CELL = Cell("lane", "guard_r0", 2, "fair")
NAMES = ("mine", "peer", "other")


def results(*runs: Run, names: tuple[str, ...] = ("mine", "peer")) -> Results:
    return Results(Path("x.jsonl"), fakes.header(list(names), [CELL]), list(runs))


def series(contender: str, *mops: float, dirty: tuple[int, ...] = ()) -> list[Run]:
    made = [fakes.record(value, dirty=number in dirty) for number, value in enumerate(mops)]
    return [fakes.run(CELL, contender, number, record) for number, record in enumerate(made)]


def rows(*runs: Run) -> dict[str, Row]:
    return {row.contender: row for row in make_rows(results(*runs))}


def test_numbers() -> None:
    made = rows(*series("mine", 10, 30, 20, 20, 20), *series("peer", 5, 10, 10, 10, 2))
    assert made["mine"].speed == Quartiles(20e6, 20e6, 20e6)
    assert (made["mine"].ratio, made["mine"].verdict) == (None, None)
    assert made["peer"].ratio is not None
    assert (made["peer"].ratio.median, made["peer"].ratio.low) == (2, 2)
    assert made["peer"].ratio_quartiles == Quartiles(2, 2, 3)
    assert made["peer"].verdict == "ahead"


def test_a_compact_table_has_a_column_for_each_allocator() -> None:
    made = make_rows(results(*series("mine", *[8] * 5), *series("peer", *[4] * 5)))
    lost = replace(made[1], contender="other", failed="out of memory", ratio=None)
    lines = compact([*made, lost], "mine").splitlines()
    assert lines[0] == "| cell | mine: ops/s, peak MiB | peer | other |"
    assert lines[2] == "| guard_r0/T2/fair | 8.00 M, 4.0 | 2.00 ahead (1.00) | failed |"
    assert lines[3] == "| mean |  | 2.00 (1.00) | - |"


def test_no_verdict_on_a_few_pairs() -> None:
    few = rows(*series("mine", *[8] * 5), *series("peer", *[4] * 5, dirty=(1,)))["peer"]
    assert (few.verdict, few.ratio) == ("refused", Estimate(2, 2, 2))


def test_memory_is_without_the_harness_except_after() -> None:
    peer = rows(*series("peer", 1))["peer"]
    assert (peer.peak_kib, peer.idle_kib, peer.after_kib) == (4096, 2048, 1536)


def test_a_ratio_needs_both_runs_of_a_round_clean() -> None:
    made = rows(*series("mine", 10, 99, 30, dirty=(1,)), *series("peer", 5, 5, 1, dirty=(2,)))
    assert made["peer"].ratio == Estimate(2, 2, 2)
    assert (made["peer"].dirty, made["peer"].speed) == (1, Quartiles(5e6, 5e6, 5e6))


def test_the_last_attempt_counts() -> None:
    again = fakes.run(CELL, "peer", 0, fakes.record(8), attempt=2)
    made = rows(*series("mine", 8), *series("peer", 4, dirty=(0,)), again)
    assert (made["peer"].ratio, made["peer"].dirty, made["peer"].runs) == (Estimate(1, 1, 1), 0, 1)


def test_dirty_alone_is_refused() -> None:
    made = rows(*series("mine", 8), *series("peer", 4, dirty=(0,)))
    assert (made["peer"].verdict, made["peer"].speed, made["peer"].peak_kib) == ("refused", None, None)
    behind = rows(*series("mine", 8, dirty=(0,)), *series("peer", 4))
    assert (behind["peer"].verdict, behind["peer"].ratio) == ("refused", None)


def test_failed_is_refused() -> None:
    crash = fakes.run(CELL, "peer", 1, {"failed": "ended by SIGSEGV"})
    made = rows(*series("mine", 8, 8), *series("peer", 4), crash)
    assert (made["peer"].verdict, made["peer"].failed, made["peer"].speed) == ("refused", "ended by SIGSEGV", None)


def test_disturbed_counts_and_shows() -> None:
    run = fakes.run(CELL, "peer", 0, fakes.record(4), disturbed=True)
    assert (rows(*series("mine", 8), run)["peer"].disturbed, rows(*series("mine", 8), run)["peer"].ratio) == (
        1,
        Estimate(2, 2, 2),
    )


def test_the_better_setting_counts() -> None:
    runs = [*series("mine", *[8] * 5), *series("peer", *[4] * 5), *series("peer+nothp", *[16] * 5)]
    made = make_rows(results(*runs, names=("mine", "peer", "peer+nothp")))
    assert [row.contender for row in made] == ["mine", "peer", "peer+nothp"]
    assert [(row.contender, row.verdict) for row in better_settings(made)] == [
        ("mine", None),
        ("peer+nothp", "behind"),
    ]


def test_another_may_be_judged() -> None:
    made = make_rows(results(*series("mine", *[8] * 5), *series("peer", *[4] * 5)), "peer")
    assert [(row.contender, row.verdict) for row in made] == [("mine", "behind"), ("peer", None)]


def test_markdown() -> None:
    peer_runs = series("peer", *[5] * 5, 1, dirty=(5,))
    text = markdown(list(rows(*series("mine", *[10, 10, 20] * 2), *peer_runs).values()), "mine")
    head, _, mine, peer = text.splitlines()
    assert head == "| " + " | ".join(headings("mine", rested=False)) + " |"
    assert mine == ("| guard_r0/T2/fair | mine | 10.00 M (10.00 M..17.50 M) | - | - | 4.0 | 2.0 | 1.5 | 6 | 0 | 0 |")
    assert peer == (
        "| guard_r0/T2/fair | peer | 5.00 M (5.00 M..5.00 M) | 2.000 [2.000..4.000] | ahead "
        "| 4.0 | 2.0 | 1.5 | 6 | 1 | 0 |"
    )


def test_memory_that_was_read_idle_twice_has_two_columns() -> None:
    runs = [
        *series("mine", *[8] * 5),
        *(replace(run, record=run.record | {"rss_rested_kib": 2048}) for run in series("peer", *[4] * 5)),
    ]
    head, _, mine, peer = markdown(make_rows(results(*runs)), "mine").splitlines()
    assert "| idle MiB | rested MiB | after MiB |" in head
    assert "| 4.0 | 2.0 | - | 1.5 |" in mine
    assert "| 4.0 | 2.0 | 1.0 | 1.5 |" in peer


def test_refused_rows_are_shown() -> None:
    crash = fakes.run(CELL, "peer", 0, {"failed": "ended | by\nSIGSEGV"})
    made = list(rows(*series("mine", 10), crash).values())
    assert "| peer | failed: ended / by SIGSEGV | - | refused | - | - | - | 1 | 0 | 0 |" in markdown(made, "mine")
    assert verdict_counts(made, "mine").endswith("ahead 0, level 0, behind 0, unclear 0, refused 1")


@pytest.mark.parametrize("wide", [False, True])
def test_tables_for_a_terminal(wide: bool) -> None:
    crash = fakes.run(CELL, "other", 0, {"failed": "ended by SIGSEGV"})
    noisy = fakes.run(CELL, "peer", 0, fakes.record(5), disturbed=True)
    made = make_rows(results(*series("mine", *[10] * 5), noisy, *series("peer", *[5] * 6)[1:], crash, names=NAMES))
    console = Console(width=140 if wide else 80, file=io.StringIO())
    (table,) = rich_tables(made, "mine", wide)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.splitlines()[0].strip() == "guard_r0/T2/fair, memory in MiB"
    for line, words in (
        ("mine", ["10.00 M", "4.0", "2.0", "1.5"]),
        ("peer", ["5.00 M", "2.000", "ahead", "1 disturbed"]),
        ("other", ["refused", "failed: ended"]),
    ):
        found = next(row for row in text.splitlines() if row.startswith(line))
        assert all(word in found for word in words)
    assert ("(5.00 M..5.00 M)" in text) == ("[2.000..2.000]" in text) == wide


@pytest.mark.parametrize(("columns", "wide"), [(TEXT_COLUMNS, False), (WIDE_COLUMNS, True)])
def test_tables_are_as_wide_as_they_may_be(columns: int, wide: bool) -> None:
    """Whole numbers, a hundred million operations a second, long names: nothing is cut, and no line is longer."""
    names = ("hakozuna", "debian-mimalloc+allow_thp")
    speeds = [123.45, 234.56, 199.99, 201.5, 177.7]
    runs = [
        fakes.run(CELL, name, number, fakes.record(value, rss_peak_kib=1 << 24))
        for name in names
        for number, value in enumerate(speeds)
    ]
    made = make_rows(results(*runs, names=names), "hakozuna")
    console = Console(width=columns, file=io.StringIO())
    for table in rich_tables(made, "hakozuna", wide):
        console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= columns
    for word in ("hakozuna", "199.99 M", " 16383.0    2.0    1.5", *(["(177.70 M..201.50 M)"] if wide else [])):
        assert word in text, text


def test_conditions() -> None:
    made = results(*series("mine", 1), fakes.run(CELL, "mine", 1, fakes.record(1), attempt=2, disturbed=True))
    assert "unknown (interrupted)" in conditions(made)
    made.end = End("9.99", 1)
    text = conditions(made)
    for expected in ("c0ffee", "9.99 after", "sha256 e3b0c442", "1 of 2 runs disturbed", "1 repetitions", "25.0%"):
        assert expected in text


@pytest.mark.parametrize(
    ("value", "text"), [(12.3456e6, "12.35 M"), (1500, "1.50 k"), (0.25, "0.25"), (999, "999"), (1e9, "1000.00 M")]
)
def test_operations(value: float, text: str) -> None:
    assert operations(value) == text


def timed(contender: str, number: int, base: float) -> Run:
    """malloc takes `base` ns, free twice as long; the n-th of the numbers is ten times the one before."""
    names = ("p50", "p99", "p99.9", "p99.99", "longest")
    malloc = {"calls": 5} | {name: base * 10.0**place for place, name in enumerate(names)}
    free = {name: value * 2 for name, value in malloc.items()}
    record = fakes.record(1) | {"latency_ns": {"clock": 8.0, "malloc": malloc, "free": free}}
    return fakes.run(CELL, contender, number, record)


def test_latencies_are_medians_of_the_runs() -> None:
    made = rows(*(timed("mine", number, base) for number, base in enumerate((30, 10, 20))), *series("peer", 1))
    assert made["mine"].latency_ns == {"malloc": (20, 200, 2e3, 2e4, 2e5), "free": (40, 400, 4e3, 4e4, 4e5)}
    assert made["peer"].latency_ns is None


def test_latencies_have_a_table_of_their_own() -> None:
    made = make_rows(results(timed("mine", 0, 20), timed("peer", 0, 40)))
    (table,) = latency_markdown(made)
    heading, _, mine, peer = table.splitlines()
    assert "| malloc p99.99 | malloc longest | free p50 |" in heading
    assert mine.endswith("| mine | 20 ns | 200 ns | 2 us | 20 us | 200 us | 40 ns | 400 ns | 4 us | 40 us | 400 us |")
    assert "| peer | 40 ns |" in peer
    screen = io.StringIO()
    console = Console(file=screen, width=100)
    for one in rich_latency(made):
        console.print(one)
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert [line.split()[1:3] for line in lines if " peer " in line] == [["peer", "40"], ["peer", "80"]]
    assert max(len(line) for line in lines) < 100


def test_no_latencies_no_table() -> None:
    made = make_rows(results(*series("mine", 1)))
    assert (latency_markdown(made), rich_latency(made)) == ([], [])


def test_nanoseconds_in_three_digits() -> None:
    shown = [nanoseconds(value) for value in (9.8, 999, 1234, 97148, 4.0076e7)]
    assert shown == ["10 ns", "999 ns", "1.23 us", "97.1 us", "40.1 ms"]
