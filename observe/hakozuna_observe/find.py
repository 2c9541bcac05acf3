# SPDX-License-Identifier: Apache-2.0
"""All processes that Hakozuna serves and that may be looked into: for `hz top` and `hz exporter`.

A process that is not served is asked again when it has mapped another program, and seldom otherwise, for it may load a
library that has a heap of ours. Costs a read of /proc/PID/maps for each process that is asked. No process hides others:
one that is damaged is left out, and one that takes long is waited for once. Its look goes on meanwhile, and what it
finds is shown by a later one.
"""

from __future__ import annotations

import time
from pathlib import Path

from hakozuna_observe import layout, picture
from hakozuna_observe.process import Process, UnseenError, Work

_PATIENCE = 2.0  # seconds
_FIRST_REST, _LONGEST_REST = 1.0, 60.0  # seconds until a process that is not served is asked again


class _Look:
    """At one process, in a thread of its own. What was `known` of it before is shown until this one has ended."""

    def __init__(self, process: Process, known: _Look | None) -> None:
        # None: to be asked.
        self.layouts: list[layout.Layout] | None = None if known is None else known.layouts or None
        self.pictures: list[picture.Picture] = [] if known is None else known.pictures
        self.is_late = False
        self._rest: float = _FIRST_REST if known is None else min(2 * known._rest, _LONGEST_REST)
        self._again = time.monotonic() + self._rest  # if it is not served
        self._process = process
        self._work = Work(self._take)

    def _take(self) -> None:
        layouts = self.layouts
        if layouts is None:
            layouts = self._find()
        self.pictures = [picture.take(self._process, one) for one in layouts]
        self.layouts = layouts

    def _find(self) -> list[layout.Layout]:
        try:
            return layout.find(self._process)
        except UnseenError as why:
            if why.code == layout.NOT_SERVED:
                return []
            raise

    def wants_another(self) -> bool:
        """Returns true if another one is to be begun: this one has ended, and the process is ours or has not been asked
        for long."""
        return not self.is_late and (self.layouts != [] or time.monotonic() >= self._again)

    def wait(self) -> None:
        """The first time for as long as it may take. `UnseenError`: why nothing is to be seen."""
        self.is_late = not self._work.ended(0.0 if self.is_late else _PATIENCE)
        if self.is_late and self._process.is_late():
            self.pictures = []


class Watch:
    """Remembers which processes are ours, so that looking again costs little."""

    def __init__(self) -> None:
        self._looks: dict[tuple[int, str], _Look] = {}

    def look(self) -> list[picture.Picture]:
        """One picture a heap, of those that live now."""
        pictures: list[picture.Picture] = []
        looks: dict[tuple[int, str], _Look] = {}
        for pid in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            try:
                process = Process(pid)
                key = (pid, process.started + process.name())
                look = self._looks.get(key)
                if look is None or look.wants_another():
                    look = _Look(process, look)
                looks[key] = look
                look.wait()
                pictures += look.pictures
            except UnseenError:
                continue
        self._looks = looks
        return pictures
