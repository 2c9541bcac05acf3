# SPDX-License-Identifier: Apache-2.0
"""Pictures as OpenMetrics text 1.0 (also read by Prometheus): for `hz stat --openmetrics` and `hz exporter`.

Names follow the format's rules: base units in the name, counters end in _total, one family after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hakozuna_observe.picture import Picture, SizeClass

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

# Name, unit if it is the name's last word, what it is, and its value; None: there is none.
_Row = tuple[str, str, str, Callable[[Picture], "int | None"]]
_GAUGES: tuple[_Row, ...] = (
    ("live_bytes", "bytes", "Blocks that the program holds.", lambda one: one.stats["bytes_live"]),
    ("cached_bytes", "bytes", "Free slots that threads cache or pass on.", lambda one: one.stats["bytes_cached"]),
    ("dirty_bytes", "bytes", "Free memory that is still backed by pages.", lambda one: one.stats["bytes_dirty"]),
    ("metadata_bytes", "bytes", "The heap's own.", lambda one: one.stats["bytes_metadata"]),
    ("peak_bytes", "bytes", "Highest live and cached so far.", lambda one: one.stats["bytes_peak"]),
    ("resident_bytes", "bytes", "Resident memory of the process.", lambda one: one.resident),
    ("held_open_bytes", "bytes", "Free in spans that some slot keeps in use.", lambda one: one.held_open),
    ("huge_bytes", "bytes", "Blocks above 4 MiB, or grown beyond 128 KiB, of live.", lambda one: one.huge_bytes),
    ("limit_soft_bytes", "bytes", "Above it caches come back before the heap grows.", lambda one: one.limit_soft),
    ("limit_hard_bytes", "bytes", "The heap never has more.", lambda one: one.limit_hard),
    ("threads", "", "Threads that have used the heap and live.", lambda one: one.stats["threads"]),
)
_COUNTERS: tuple[_Row, ...] = (
    ("purged_bytes", "bytes", "Given back to the system so far.", lambda one: one.stats.get("bytes_purged")),
    ("refills", "", "Times that a thread's bin got slots.", lambda one: one.stats.get("refills")),
    ("flushes", "", "Times that a thread's bin gave slots away.", lambda one: one.stats.get("flushes")),
    ("spans_acquired", "", "Spans taken from the arena.", lambda one: one.stats.get("spans_acquired")),
    ("spans_retired", "", "Spans given back to the arena.", lambda one: one.stats.get("spans_retired")),
    ("purges", "", "Times that pages went back to the system.", lambda one: one.stats.get("purges")),
    ("revocations", "", "Times that an idle cache was taken back.", lambda one: one.stats.get("revocations")),
    ("remote_sent", "", "Slots that went to the thread that owns them.", lambda one: one.stats.get("remote_sent")),
)
_OF_CLASSES: tuple[tuple[str, str, Callable[[SizeClass], int]], ...] = (
    ("class_out_bytes", "Slots out of their spans, by size.", lambda one: one.out_bytes),
    ("class_cached_bytes", "Of these, cached by threads.", lambda one: one.cached_bytes),
    ("class_held_open_bytes", "Free in spans that some slot keeps in use.", lambda one: one.held_open),
)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(picture: Picture, more: Mapping[str, str] | None = None) -> str:
    labels = {"pid": str(picture.pid), "program": picture.program, "line": picture.line} | dict(more or {})
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


class _Family:
    """Lines of one metric; nothing of it is written if it has no sample."""

    def __init__(self, name: str, kind: str, text: str, unit: str = "") -> None:
        self.name, self.kind, self.help, self.unit = f"hakozuna_{name}", kind, text, unit
        self.samples: dict[str, int] = {}

    def add(self, picture: Picture, value: int, more: Mapping[str, str] | None = None) -> None:
        suffix = {"counter": "_total", "info": "_info"}.get(self.kind, "")
        # Two samples of one name spoil the scrape, and with it those of all other processes: they are one heap's.
        self.samples.setdefault(f"{self.name}{suffix}{_labels(picture, more)}", value)

    def lines(self) -> Iterator[str]:
        if not self.samples:
            return
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {self.help}"
        for labels, value in self.samples.items():
            yield f"{labels} {value}"


def render(pictures: Iterable[Picture]) -> str:
    """Of all processes together, as a scrape is."""
    every = list(pictures)
    build = _Family("build", "info", "The line and release of the library.")
    for picture in every:
        build.add(picture, 1, {"release": picture.release})
    families = [build]
    for kind, rows in (("gauge", _GAUGES), ("counter", _COUNTERS)):
        for name, unit, text, value in rows:
            family = _Family(name, kind, text, unit)
            for picture in every:
                amount = value(picture)
                if amount is not None:
                    family.add(picture, amount)
            families.append(family)
    for name, text, of_class in _OF_CLASSES:
        family = _Family(name, "gauge", text, "bytes")
        for picture in every:
            for one in picture.classes:
                family.add(picture, of_class(one), {"size": str(one.size)})
        families.append(family)
    return "\n".join([*(line for family in families for line in family.lines()), "# EOF"]) + "\n"
