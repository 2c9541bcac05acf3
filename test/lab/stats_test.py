# SPDX-License-Identifier: Apache-2.0
"""Statistics: known answers, and that an interval holds the median as often as it says."""

import numpy as np
import pytest
from hakozuna_lab import stats
from hakozuna_lab.stats import Estimate, Quartiles, median_interval, quartiles, verdict


def test_quartiles() -> None:
    assert quartiles([5, 1, 4, 2, 3]) == Quartiles(2, 3, 4)
    assert quartiles([7]) == Quartiles(7, 7, 7)


def test_interval_of_one_value_is_that_value() -> None:
    assert median_interval([2.0]) == Estimate(2, 2, 2)


def test_interval_lies_in_the_sample_and_narrows() -> None:
    few, many = median_interval([1, 2, 3, 4, 5]), median_interval([1, 2, 3, 4, 5] * 20)
    assert few == Estimate(3, 1, 5)
    assert few.low < many.low <= 3 <= many.high < few.high


@pytest.mark.parametrize("size", [7, 20])
def test_interval_holds_the_true_median_as_often_as_it_says(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 1000)
    samples = np.random.default_rng(1).lognormal(0, 0.05, (200, size))
    held = sum(e.low <= 1 <= e.high for e in map(median_interval, samples.tolist()))
    assert 0.90 <= held / 200 <= 0.99


def test_verdict() -> None:
    assert verdict(Estimate(1.2, 1.05, 1.3)) == "ahead"
    assert verdict(Estimate(0.8, 0.7, 0.99)) == "behind"
    assert verdict(Estimate(1.2, 0.95, 1.3)) == "unclear"
    assert verdict(Estimate(1.0, 0.98, 1.001)) == "unclear"
    assert verdict(Estimate(1.0, 0.99, 1.01)) == "level"
    assert verdict(Estimate(1.005, 1.001, 1.01)) == "level"
    assert verdict(Estimate(0.995, 0.99, 0.999)) == "level"
    assert verdict(Estimate(1.01, 1.001, 1.02)) == "ahead"
