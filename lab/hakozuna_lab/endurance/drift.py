# SPDX-License-Identifier: Apache-2.0
"""Whether memory drifts: the slope of samples that were taken at equal points of a load that repeats itself. For `hz
endure --hours`. Theil-Sen, the median of the slopes of all pairs, which does not mind a sample that lies far off; its
interval is Sen's, by Kendall's variance. Costs milliseconds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Verdict = Literal["level", "drift", "unclear"]

MOST = 1.0  # per cent an hour
SETTLED = 0.5  # the last part of the time that counts: before, tables and caches still grow to what the load needs
MOST_SAMPLES = 240  # of more, medians of neighbours
NORMAL = 1.96  # 95 % of a normal distribution lie within so many deviations
GRANULE_MIB = 1 / 16  # memory comes in granules: what grew by less than one does not show
FILLING = 2.0  # per cent of the memory: so much more may come by tables and caches that still fill up, and be no leak


@dataclass(frozen=True)
class Drift:
    """In per cent an hour. Infinite bounds: there were too few samples for any."""

    slope: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """A heap that shrinks does not leak. What may be within the limit and may be beyond it is unclear."""
        if self.low > MOST:
            return "drift"
        return "level" if self.high <= MOST else "unclear"

    def __str__(self) -> str:
        return f"{self.slope:+.2f} %/h [{self.low:+.2f}..{self.high:+.2f}]"


UNKNOWN = Drift(0.0, -math.inf, math.inf)


def of(hours: Sequence[float], mib: Sequence[float]) -> Drift:
    """Of the second half of the time from the first sample to the last."""
    at, values = np.asarray(hours, dtype=float), np.asarray(mib, dtype=float)
    if len(at) < 2 or at[-1] <= at[0]:
        return UNKNOWN
    counts = at >= at[-1] - SETTLED * (at[-1] - at[0])
    at, values = thinned(at[counts]), thinned(values[counts])
    level = float(np.median(values))
    if len(at) < 4 or level <= 0:
        return UNKNOWN
    first, second = np.triu_indices(len(at), 1)
    slopes = np.sort((values[second] - values[first]) / (at[second] - at[first]))
    slope = float(np.median(slopes))
    low, high = bounds(slopes, spread(at, values, slope))
    time = float(at[-1] - at[0])
    unseen, filling = GRANULE_MIB / time, FILLING / 100 * level / time
    return Drift(*(100 / level * value for value in (slope, low - unseen - filling, high + unseen)))


def thinned(values: np.ndarray) -> np.ndarray:
    parts = min(len(values), MOST_SAMPLES)
    return np.array([np.median(part) for part in np.array_split(values, parts)])


def spread(at: np.ndarray, values: np.ndarray, slope: float) -> float:
    """The deviation of Kendall's statistic if there were no drift. Neighbours that resemble each other say less than as
    many that do not: they count as fewer."""
    n = len(at)
    rest = values - slope * at
    rest = rest - rest.mean()
    power = float(rest @ rest)
    alike = float(rest[1:] @ rest[:-1]) / power if power > 0 else 0.0
    alike = min(max(alike, 0.0), 0.95)
    return math.sqrt(n * (n - 1) * (2 * n + 5) / 18 * (1 + alike) / (1 - alike))


def bounds(slopes: np.ndarray, deviation: float) -> tuple[float, float]:
    """So many of the slopes lie below the interval, and as many above it."""
    outside = math.floor((len(slopes) - NORMAL * deviation) / 2)
    if outside < 1:
        return -math.inf, math.inf
    return float(slopes[outside - 1]), float(slopes[-outside])
