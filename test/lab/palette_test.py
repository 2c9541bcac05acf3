# SPDX-License-Identifier: Apache-2.0
"""The report's colours: contrast as WCAG 2 defines it, and distance as colour-blind readers see it."""

from itertools import combinations

import numpy as np
import pytest
from hakozuna_lab.palette import ALLOCATORS, THEME, styles, themed

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
       [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
OKLAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
         [0.0259040371, 0.7827717662, -0.808675766]]  # fmt: skip
SCHEMES = pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])


def linear(color: str) -> np.ndarray:
    value = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def distance(one: str, other: str, sight: str) -> float:
    """In OKLab, where 0.02 is just seen."""
    seen = [np.clip(np.array(SIGHTS[sight]) @ linear(color), 0, 1) for color in (one, other)]
    a, b = (np.array(OKLAB) @ np.cbrt(np.array(LMS) @ color) for color in seen)
    return float(np.linalg.norm(a - b))


def test_the_measures_themselves() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert distance("#ffffff", "#000000", "usual") == pytest.approx(1, abs=0.001)
    assert distance("#d55e00", "#b57c00", "deuteranopia") < 0.05 < distance("#d55e00", "#b57c00", "usual")


@SCHEMES
def test_text_can_be_read(scheme: int) -> None:
    grounds = [name for name in THEME if name.startswith(("page", "quiet", "level", "ahead", "behind"))]
    assert min(contrast(THEME["ink"][scheme], THEME[name][scheme]) for name in grounds) >= 4.5
    assert min(contrast(THEME["soft"][scheme], THEME[name][scheme]) for name in ("page", "quiet")) >= 4.5


@SCHEMES
def test_allocators_can_be_seen_and_told_apart(scheme: int) -> None:
    colors = [pair[scheme] for pair in ALLOCATORS]
    assert min(contrast(color, THEME["page"][scheme]) for color in colors) >= 3
    assert min(distance(one, other, sight) for sight in SIGHTS for one, other in combinations(colors, 2)) >= 0.1


@SCHEMES
def test_won_and_lost_can_be_told_apart(scheme: int) -> None:
    for step in range(1, 5):
        won, lost = (THEME[f"{side}{step}"][scheme] for side in ("ahead", "behind"))
        assert min(distance(won, lost, sight) for sight in ("usual", "protanopia", "deuteranopia")) >= 0.04


@pytest.mark.parametrize("lines", [1, 2, 3, 6])
def test_allocators_look_different(lines: int) -> None:
    made = styles([f"line{n}" for n in range(lines)], [f"other{n}" for n in range(21)])
    assert len({(style.color, style.marker) for style in made.values()}) == lines + 21
    ours, others = ({style.color for style in made.values() if style.ours == which} for which in (True, False))
    assert not ours & others


def test_every_color_of_a_picture_gets_its_name() -> None:
    lights = [light for light, _ in THEME.values()]
    assert len(set(lights)) == len(lights)
    assert (
        themed(f"fill: {THEME['ink'][0]}; stroke: {ALLOCATORS[1][0]}") == "fill: var(--ink); stroke: var(--allocator1)"
    )
