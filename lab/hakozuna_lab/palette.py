# SPDX-License-Identifier: Apache-2.0
"""The colours of the report, light and dark, and the style of each allocator. Pictures are drawn in the light colours;
`themed` puts names in their place, which the style sheet gives values for both schemes. Used by plots.py and report.py;
test/lab/test_palette.py holds the colours to contrast and to what colour-blind readers can tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass

# name: (light, dark). Light values are all different, for they are what `themed` finds.
THEME = {
    "page": ("#fefefe", "#14181d"),
    "ink": ("#1c2024", "#e6e9ed"),
    "soft": ("#565d66", "#a3abb5"),
    "rule": ("#d5d9de", "#363d46"),
    "quiet": ("#f3f4f6", "#1c2127"),
    "level": ("#e6e8ec", "#2b3138"),
    "ahead1": ("#dbe8fb", "#1c2c45"),
    "ahead2": ("#b4d0f8", "#1d3d6b"),
    "ahead3": ("#88b5f2", "#1c4f92"),
    "ahead4": ("#5f9ae8", "#2460b0"),
    "behind1": ("#fde6d2", "#3b291b"),
    "behind2": ("#fac99e", "#593717"),
    "behind3": ("#f2a866", "#764512"),
    "behind4": ("#e2873f", "#905009"),
}
ALLOCATORS = (
    ("#3244c5", "#42a3fd"),
    ("#dd6f23", "#e58212"),
    ("#449691", "#60eae2"),
    ("#99007a", "#a7527d"),
    ("#a76ef8", "#7853da"),
    ("#69561b", "#f7e04f"),
    ("#332d23", "#aa9a9b"),
)
THEME |= {f"allocator{number}": pair for number, pair in enumerate(ALLOCATORS)}
MARKERS = "oDs^vPX"
OURS = 4  # at most so many of the colours are for our lines alone


@dataclass(frozen=True)
class Style:
    color: str
    marker: str
    ours: bool


def light(name: str) -> str:
    return THEME[name][0]


def styles(ours: Sequence[str], others: Sequence[str]) -> dict[str, Style]:
    """Colours come back, with another marker: no two of 21 other allocators look the same, and none looks like us."""
    colors = [color for color, _ in ALLOCATORS]
    reserved = min(len(ours), OURS)
    made = {}
    for names, part in ((ours, colors[:reserved]), (others, colors[reserved:])):
        for number, name in enumerate(names):
            made[name] = Style(part[number % len(part)], MARKERS[number % len(MARKERS)], names is ours)
    return made


def themed(svg: str) -> str:
    for name in THEME:
        svg = svg.replace(light(name), f"var(--{name})")
    return svg


def style_sheet() -> str:
    """The values of all names, for both schemes."""
    schemes = [" ".join(f"--{name}: {pair[dark]};" for name, pair in THEME.items()) for dark in (0, 1)]
    return f":root {{ {schemes[0]} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {schemes[1]} }} }}"
