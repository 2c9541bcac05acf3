# SPDX-License-Identifier: Apache-2.0
"""Drift: series of which it is known whether they have one."""

import math

import numpy as np
import pytest
from hakozuna_lab.endurance import drift

CYCLES = 2400  # 8 hours, a sample each 12 seconds


def series(
    percent: float, noise: float, hours: float = 8.0, cycles: int = CYCLES, seed: int = 1, mib: float = 100.0
) -> drift.Drift:
    """So many per cent an hour of its level, with a noise of so many per cent."""
    at = np.linspace(0, hours, cycles)
    made = mib * (1 + percent / 100 * at + noise / 100 * np.random.default_rng(seed).standard_normal(cycles))
    return drift.of(at.tolist(), made.tolist())


def test_a_leak_is_found() -> None:
    found = series(percent=2, noise=0.5)
    assert found.verdict == "drift"
    assert found.slope == pytest.approx(2 / 1.12, abs=0.1)  # of its level in the second half
    assert found.low < found.slope < found.high


def test_noise_has_no_drift() -> None:
    found = series(percent=0, noise=1)
    assert found.verdict == "level"
    assert abs(found.slope) < 0.3


def test_a_slow_drift_is_within_the_limit_and_a_heap_that_shrinks_too() -> None:
    assert series(percent=0.5, noise=0.2).verdict == "level"
    assert series(percent=-3, noise=0.2).verdict == "level"


def test_a_short_run_is_unclear() -> None:
    for percent in (0, 2):
        found = series(percent, noise=1, hours=0.1, cycles=30)
        assert found.verdict == "unclear"
        assert found.low < 1 < found.high
        assert math.isfinite(found.low)


def test_memory_that_does_not_change_within_minutes_may_still_grow_by_less_than_a_granule() -> None:
    found = series(percent=0, noise=0, hours=0.1, cycles=30, mib=10)
    assert (found.slope, found.verdict) == (0, "unclear")
    assert series(percent=0, noise=0, hours=8, mib=10).verdict == "level"


@pytest.mark.parametrize("cycles", [0, 1, 2, 6])
def test_few_samples_have_no_interval(cycles: int) -> None:
    found = series(percent=50, noise=0, hours=1, cycles=cycles)
    assert (found.verdict, found.low, found.high) == ("unclear", -math.inf, math.inf)


def test_what_grew_at_the_start_and_stayed_is_no_drift() -> None:
    at = np.linspace(0, 4, CYCLES)
    grown = 100 * np.minimum(1, 0.2 + at)
    assert drift.of(at.tolist(), grown.tolist()).verdict == "level"


def test_a_few_samples_far_off_do_not_matter() -> None:
    at = np.linspace(0, 4, CYCLES)
    made = 100 + np.random.default_rng(2).standard_normal(CYCLES)
    made[-20:] *= 3
    assert drift.of(at.tolist(), made.tolist()).verdict == "level"


def test_an_interval_holds_the_true_slope_as_often_as_it_says() -> None:
    """Also where neighbours resemble each other, as samples of a heap do."""
    for alike in (0.0, 0.6):
        held = 0
        for seed in range(60):
            noise = np.random.default_rng(seed).standard_normal(160)
            for i in range(1, 160):
                noise[i] += alike * noise[i - 1]
            at = np.linspace(0, 8, 160)
            found = drift.of(at.tolist(), (1000 + 5 * at + noise).tolist())
            held += found.low <= 5 / 1030 * 100 <= found.high  # of its level in the second half
        assert held >= 54, alike


def test_how_it_is_told() -> None:
    assert str(drift.Drift(2.0, 1.5, 2.25)) == "+2.00 %/h [+1.50..+2.25]"
    assert str(drift.UNKNOWN) == "+0.00 %/h [-inf..+inf]"


def test_what_may_still_fill_up_is_unclear() -> None:
    """As a trial of 18 minutes showed it: 2 % more within its second half, by tables of the heap profile."""
    assert series(percent=14, noise=0.3, hours=0.3, cycles=170, mib=12).verdict == "unclear"
    assert series(percent=100, noise=0.3, hours=0.3, cycles=170, mib=12).verdict == "drift"
