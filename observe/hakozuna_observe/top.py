# SPDX-License-Identifier: Apache-2.0
"""`hz top`: all processes that Hakozuna serves, full screen; of the one that is chosen, memory over time and its size
classes. Needs Textual (https://textual.textualize.io); works from 80 columns by 24 lines on.

A look is taken in a thread of its own, so that keys are answered meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Footer, Label, Sparkline, Static
from textual.widgets.data_table import ColumnKey

from hakozuna_observe import find
from hakozuna_observe.picture import TENTHS, Picture
from hakozuna_observe.text import size

_HISTORY = 600  # looks
_MOST_CLASSES = 100
# From nothing to all of it, on dark and on light screens.
_HEAT = ("grey30", "dark_blue", "blue", "dodger_blue1", "cyan", "green", "yellow", "orange1", "red")

_COLUMNS: tuple[tuple[str, Callable[[Picture], int]], ...] = (
    ("resident", lambda one: one.resident),
    ("live", lambda one: one.stats["bytes_live"]),
    ("cached", lambda one: one.stats["bytes_cached"]),
    ("held open", lambda one: one.held_open),
    ("dirty", lambda one: one.stats["bytes_dirty"]),
)


def heat_map(picture: Picture) -> Text:
    """A row a size class, those that keep most first: how full its spans are, as a colour a tenth."""
    text = Text()
    text.append(f"{'size':>9} {'live or cached':>14} {'held open':>10}  spans by how full\n", style="bold")
    by_cost = sorted(picture.classes, key=lambda one: -(one.held_open + one.out_bytes))
    for one in by_cost[:_MOST_CLASSES]:
        text.append(f"{size(one.size):>9} {size(one.out_bytes):>14} {size(one.held_open):>10}  ")
        most = max(*one.fill, 1)
        for count in one.fill:
            text.append("██" if count else "··", style=_HEAT[-(-count * (len(_HEAT) - 1) // most)])
        text.append(f"  {one.spans}\n")
    if not by_cost:
        text.append("  no spans in use\n")
    return text


class Top(App[None]):
    """The screen; `looks` gives what there is to see."""

    TITLE = "hz top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    DataTable { height: 1fr; min-height: 5; }
    #detail { height: 2fr; min-height: 12; border-top: solid $primary; }
    #over { height: 2; }
    #named { height: 1; }
    #classes { height: auto; }
    #scroll { height: 1fr; overflow-y: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("s", "sort", "Sort by the next column"),
        Binding("p", "pause", "Pause"),
    ]

    def __init__(self, every: float, looks: Callable[[], list[Picture]]) -> None:
        super().__init__()
        self._every, self._looks = every, looks
        self._column, self._paused, self._is_looking = 0, False, False
        self._pictures: list[Picture] = []
        self._history: dict[tuple[int, str], deque[float]] = {}
        self._chosen: str | None = None

    def compose(self) -> ComposeResult:
        """The table above, what is chosen below."""
        yield DataTable(cursor_type="row", zebra_stripes=True)
        with Vertical(id="detail"):
            yield Label("", id="named", markup=False)
            yield Sparkline([0.0], id="over")
            with Vertical(id="scroll"):
                yield Static("", id="classes")
        yield Footer()

    def on_mount(self) -> None:
        """The first look, and then one every so often."""
        table = self.query_one(DataTable)
        table.add_column("pid", key="pid", width=7)
        table.add_column("program", key="program", width=10)
        for name, _ in _COLUMNS:
            table.add_column(name, key=name, width=9 if name != "held open" else 11)
        self.look()
        self.set_interval(self._every, self.look)

    def chosen(self) -> str | None:
        """The process below the table: its number and line."""
        return self._chosen

    def history_length(self) -> int:
        """Looks at the one that was seen most often."""
        return max(map(len, self._history.values()), default=0)

    def action_sort(self) -> None:
        """By the next column, the largest first."""
        self._column = (self._column + 1) % len(_COLUMNS)
        self.show()

    def action_pause(self) -> None:
        """Keeps what is shown, or goes on."""
        self._paused = not self._paused
        self.show()

    def look(self) -> None:
        """Unless the last look still goes on."""
        if not self._paused and not self._is_looking:
            self._is_looking = True
            self._look_in_a_thread()

    @work(thread=True)
    def _look_in_a_thread(self) -> None:
        pictures = self._looks()
        self.call_from_thread(self.seen, pictures)

    def seen(self, pictures: list[Picture]) -> None:
        """What is there now; the history of what has ended goes."""
        self._is_looking = False
        if self._is_ending():
            return
        self._pictures = pictures
        alive = {self._key(one): one for one in pictures}
        self._history = {key: old for key, old in self._history.items() if key in alive}
        for key, one in alive.items():
            self._history.setdefault(key, deque(maxlen=_HISTORY)).append(float(one.resident))
        self.show()

    def _is_ending(self) -> bool:
        return not self.is_running or not self.query("#classes")

    @staticmethod
    def _key(picture: Picture) -> tuple[int, str]:
        return picture.pid, picture.line

    def show(self) -> None:
        """Draws the table anew and keeps the choice."""
        name, value = _COLUMNS[self._column]
        table = self.query_one(DataTable)
        rows = sorted(self._pictures, key=value, reverse=True)
        keys = [f"{one.pid} {one.line}" for one in rows]
        chosen = self._chosen if self._chosen in keys else (keys[0] if keys else None)
        for other, _ in _COLUMNS:
            table.columns[ColumnKey(other)].label = Text(f"▼{other}" if other == name else other)
        with self.prevent(DataTable.RowHighlighted):  # nobody chose
            table.clear()
            for key, one in zip(keys, rows, strict=True):
                amounts = (Text(size(of(one)), justify="right") for _, of in _COLUMNS)
                table.add_row(str(one.pid), Text(one.program), *amounts, key=key)
            if chosen is not None:
                table.move_cursor(row=keys.index(chosen))
        if chosen is not None:
            self._show_chosen(rows[keys.index(chosen)])
        else:
            self.query_one("#named", Label).update("no process is served by Hakozuna; try: hz run PROGRAM")
            self.query_one("#classes", Static).update("")
        self._chosen = chosen

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """The arrow keys choose."""
        if self._is_ending() or event.row_key is None or event.row_key.value is None:
            return
        self._chosen = event.row_key.value
        for one in self._pictures:
            if f"{one.pid} {one.line}" == self._chosen:
                self._show_chosen(one)

    def _show_chosen(self, picture: Picture) -> None:
        idle = sum(1 for one in picture.threads if one.revoked)
        self.query_one("#named", Label).update(
            ("paused: " if self._paused else "")
            + f"{picture.program} {picture.pid}, {picture.line}; purger {picture.purger}; "
            + f"{idle} of {len(picture.threads)} threads idle; resident so far:"
        )
        self.query_one("#over", Sparkline).data = [0.0, *self._history[self._key(picture)]]
        self.query_one("#classes", Static).update(heat_map(picture))


assert len(_HEAT) <= TENTHS


def run(every: float) -> int:
    """Until the user quits."""
    Top(every, find.Watch().look).run()
    return 0
