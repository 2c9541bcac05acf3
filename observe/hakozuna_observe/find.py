# SPDX-License-Identifier: Apache-2.0
"""All processes that Hakozuna serves and that may be looked into: for `hz top` and `hz exporter`.

A process that is not served is asked again only when it has mapped another program. Costs a read of /proc/PID/maps for
each process that may be read.
"""

from __future__ import annotations

from pathlib import Path

from hakozuna_observe import layout, picture
from hakozuna_observe.process import Process, UnseenError


class Watch:
    """Remembers which processes are ours, so that looking again costs little."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], list[layout.Layout]] = {}

    def look(self) -> list[picture.Picture]:
        """One picture a heap, of those that live now."""
        pictures, known = [], {}
        for pid in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            try:
                process = Process(pid)
                key = (pid, process.started + process.name())
                layouts = self._known.get(key)
                if layouts is None:
                    layouts = self._layouts(process)
                known[key] = layouts
                pictures += [picture.take(process, one) for one in layouts]
            except UnseenError:
                continue
        self._known = known
        return pictures

    @staticmethod
    def _layouts(process: Process) -> list[layout.Layout]:
        try:
            return layout.find(process)
        except UnseenError as why:
            if why.code == layout.NOT_SERVED:
                return []
            raise
