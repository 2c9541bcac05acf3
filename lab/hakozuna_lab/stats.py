# SPDX-License-Identifier: Apache-2.0
"""Medians, quartiles, the bootstrap interval of a median, and the verdict on a ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Verdict = Literal["ahead", "level", "behind", "unclear", "refused"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

LEVEL = 0.01  # ratios this near to 1 are the same
RESAMPLES = 5_000
FEWEST = 5  # of fewer ratios not even the range holds the median in 94 of 100 cases: there is no verdict


@dataclass(frozen=True)
class Quartiles:
    p25: float
    median: float
    p75: float


@dataclass(frozen=True)
class Estimate:
    """A median and the interval in which it lies with the confidence asked for."""

    median: float
    low: float
    high: float


def quartiles(values: Sequence[float]) -> Quartiles:
    p25, median, p75 = np.percentile(np.asarray(values, dtype=float), [25, 50, 75])
    return Quartiles(float(p25), float(median), float(p75))


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The percentile bootstrap. Its random numbers are always the same, so a table made twice is the same table."""
    sample = np.asarray(values, dtype=float)
    draws = np.random.default_rng(0).choice(sample, size=(RESAMPLES, len(sample)))
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.median(draws, axis=1), [tail, 100 - tail])
    return Estimate(float(np.median(sample)), float(low), float(high))


def verdict(ratio: Estimate) -> Verdict:
    """Of the one whose throughput is the ratio's numerator. Level is what was shown to be level: an interval that has
    1 in it and is wider is unclear."""
    if ratio.low >= 1 - LEVEL and ratio.high <= 1 + LEVEL:
        return "level"
    if ratio.low > 1:
        return "ahead"
    return "behind" if ratio.high < 1 else "unclear"
