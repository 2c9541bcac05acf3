# SPDX-License-Identifier: Apache-2.0
"""`hz top`, in a terminal of Textual's own: what it shows, its keys, and that it works in 80 columns."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

import pytest
from hakozuna_observe import find, layout, picture, top
from hakozuna_observe.process import Process, UnseenError
from holders import Holders
from textual.pilot import Pilot
from textual.widgets import DataTable

pytest_plugins = ("holders",)

Visit = Callable[[top.Top, Pilot[None]], Awaitable[None]]


def on_screen(app: top.Top) -> list[str]:
    """The text of its lines, as the screenshot has it."""
    words = re.findall(r'y="([\d.]+)"[^>]*>([^<]*)</text>', app.export_screenshot())
    rows: dict[float, str] = {}
    for y, word in words:
        rows[float(y)] = rows.get(float(y), "") + word.replace("&#160;", " ")
    return [rows[y] for y in sorted(rows)]


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """A busy machine may take its time."""
    for _ in range(400):
        if holds():
            return
        await pilot.pause(0.05)
    raise AssertionError("not in 20 seconds")


def shows(app: top.Top, *words: str) -> Callable[[], bool]:
    """Whether all of them are on the screen."""
    return lambda: all(word in "\n".join(on_screen(app)) for word in words)


def run(looks: Callable[[], list[picture.Picture]], visit: Visit, size: tuple[int, int] = (80, 24)) -> None:
    """Starts it, lets it look, and hands it over."""

    async def all_of_it() -> None:
        app = top.Top(0.2, looks)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.history_length() >= 2 or not looks())
            await visit(app, pilot)

    asyncio.run(all_of_it())


def test_eighty_columns_show_every_amount(hold: Holders) -> None:
    held = [hold("hakozuna", HZ_BACKGROUND="0"), hold("hz7")]

    def looks() -> list[picture.Picture]:
        return [one for process in held for one in picture.look(process.pid)]

    async def visit(app: top.Top, pilot: Pilot[None]) -> None:
        pids = [str(one.pid) for one in held]
        await until(pilot, shows(app, "▼resident", "held open", "dirty", "hz-holder", "0 B", *pids))
        assert app.query_one(DataTable).virtual_size.width <= 80
        before = app.chosen()
        assert before in (f"{held[0].pid} hakozuna", f"{held[1].pid} hz7")
        await pilot.press("s")
        await until(pilot, shows(app, "▼live"))
        await pilot.press("down" if app.query_one(DataTable).cursor_row == 0 else "up")
        await until(pilot, lambda: app.chosen() != before)
        await pilot.press("p")
        await until(pilot, shows(app, "paused"))
        await pilot.resize_terminal(140, 50)
        await until(pilot, shows(app, "hz-holder"))
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)

    run(looks, visit)


def test_a_process_that_loads_us_late_is_found(hold: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    held = hold("hakozuna")
    really, asked = layout.find, []

    def late(process: Process) -> list[layout.Layout]:
        if process.pid != held.pid:
            return []
        asked.append(process.pid)
        if len(asked) == 1:
            raise UnseenError("not yet", layout.NOT_SERVED)
        return really(process)

    monkeypatch.setattr(layout, "find", late)
    monkeypatch.setattr(find, "_FIRST_REST", 0.5)
    watch = find.Watch()
    assert held.pid not in [one.pid for one in watch.look()]
    assert held.pid not in [one.pid for one in watch.look()]
    assert len(asked) == 1, "not at each look"
    time.sleep(0.6)
    assert held.pid in [one.pid for one in watch.look()]


def test_nobody_is_there_and_somebody_ends(hold: Holders) -> None:
    async def nobody(app: top.Top, pilot: Pilot[None]) -> None:
        await until(pilot, shows(app, "no process is served"))

    run(list, nobody)

    held = hold("hakozuna")
    (one,) = picture.look(held.pid)
    shown = [one]

    async def ends(app: top.Top, pilot: Pilot[None]) -> None:
        await until(pilot, shows(app, str(held.pid)))
        shown.clear()
        await until(pilot, shows(app, "no process is served"))

    run(lambda: list(shown), ends)
