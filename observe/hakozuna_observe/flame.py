# SPDX-License-Identifier: Apache-2.0
"""`hz prof --flame`: one HTML page with a flame graph of one profile, or of the difference of two.

The page (flame.html, beside this file) has its script and style in itself and asks nothing of a network; here it gets
its data. What comes of a profile, names of functions above all, is text to the page and nothing else.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from hakozuna_observe.profile import MEASURES, Figures
from hakozuna_observe.symbols import Frame, short

Sites = Sequence[tuple[tuple[Frame, ...], Figures]]


def render(title: str, facts: Sequence[str], by: str, sites: Sites, before: Sites | None = None) -> str:
    """With `before` the page shows what changed since."""
    numbers: dict[tuple[str, str], int] = {}
    names: list[list[str]] = []
    rows: dict[tuple[int, ...], list[list[int]]] = {}

    def number(frame: Frame) -> int:
        key = (frame.function, frame.module)
        if key not in numbers:
            numbers[key] = len(names)
            names.append([short(frame.function), frame.function, frame.place, frame.module])
        elif names[numbers[key]][2] != frame.place:  # called from, or allocating in, several lines
            names[numbers[key]][2] = Path(frame.file).name
        return numbers[key]

    for side, each in enumerate((sites, before or ())):
        for frames, figures in each:
            amounts = rows.setdefault(tuple(map(number, frames)), [[0] * (2 * len(MEASURES)) for _ in range(2)])[side]
            for place, measure in enumerate(MEASURES):
                amounts[2 * place] += figures.bytes_of(measure)
                amounts[2 * place + 1] += figures.blocks_of(measure)
    data = {
        "by": by,
        "is_difference": before is not None,
        "names": names,
        "sites": [[list(stack), *(amounts if before is not None else amounts[:1])] for stack, amounts in rows.items()],
    }
    # Nothing in it ends the element that it stands in.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = Path(__file__).with_name("flame.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(title),
        "FACTS": "".join(f"<li>{html.escape(fact)}</li>" for fact in facts),
        "DATA": text,
    }
    # Between pairs of @@ stand the names of parts; what is put in is not looked at again.
    return "".join(parts[one] if number % 2 else one for number, one in enumerate(page.split("@@")))
