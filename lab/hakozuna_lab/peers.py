# SPDX-License-Identifier: Apache-2.0
"""`hz peers`: the allocators to compare with, as they are on this machine; and `find_peers`, which makes contenders of
them. peer_list.py says what they are, peer_build.py builds some of them, peer_probe.py proves that they serve."""

import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hakozuna_lab import LabError, peer_build
from hakozuna_lab.contender import Contender
from hakozuna_lab.peer_list import HARDENED, PEERS, Crate, Package, Peer, check_setting, named
from hakozuna_lab.peer_probe import probe


@dataclass(frozen=True)
class Found:
    """A peer as this machine has it. `lacks` says why it cannot be used, and is empty if it can."""

    peer: Peer
    library: Path | None = None
    version: str = ""
    source: str = ""
    lacks: str = ""


@cache
def packages() -> Mapping[str, str]:
    """Versions of Debian's packages that a peer may come from."""
    patterns = [peer.source.name for peer in PEERS if isinstance(peer.source, Package)]
    command = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Status}\n", *patterns]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return {}
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[0]: row[1] for row in rows if row[2:] == ["installed"]}


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def find_package(peer: Peer, package: Package) -> Found:
    installed = fnmatch.filter(packages(), package.name)
    files = [str(path) for path in Path("/").glob(package.files.lstrip("/"))]
    if not files or not installed:
        return Found(peer, source="Debian", lacks=f"not installed: Debian's {package.name}")
    name = max(installed, key=numbers)
    return Found(peer, Path(max(files, key=numbers)), packages()[name], f"Debian {name}")


def find_crate(peer: Peer, crate: Crate) -> Found:
    library = peer_build.library(peer)
    record = peer_build.read_record(peer)
    if record is None or not library.is_file():
        return Found(peer, source=crate.name, lacks="not built: hz peers --build")
    lacks = ""
    if record.sources != peer_build.sources(peer):
        lacks = "bench/peers has changed: hz peers --build"
    elif record.sha256 != peer_build.sha256(library):
        lacks = "the library is not the one that was built: hz peers --build"
    return Found(peer, library, record.version, record.crate, lacks)


def find(peer: Peer) -> Found:
    if isinstance(peer.source, Package):
        return find_package(peer, peer.source)
    if isinstance(peer.source, Crate):
        return find_crate(peer, peer.source)
    version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")[2]
    return Found(peer, version=version, source="the system", lacks="" if version else "the C library is not glibc")


def contenders(found: Found, settings: Iterable[str] = ("",)) -> list[Contender]:
    """One per setting; the empty one is the default."""
    if found.lacks:
        raise LabError(f"{found.peer.name}: {found.lacks}")
    peer, made = found.peer, []
    for setting in settings:
        check_setting(peer, setting)
        name, env = (f"{peer.name}+{setting}", peer.settings[setting]) if setting else (peer.name, {})
        made.append(Contender(name, found.library, {**peer.env, **env}, found.version))
    return made


def every_setting(found: Found) -> list[Contender]:
    return contenders(found, ["", *found.peer.settings])


def usable(listed: Iterable[Peer] = ()) -> list[Found]:
    return [found for found in map(find, listed or PEERS) if not found.lacks]


def newest() -> list[Found]:
    """Of each allocator the newest that is here; PEERS has the newest first."""
    by_family: dict[str, Found] = {}
    for found in usable():
        by_family.setdefault(found.peer.family, found)
    return list(by_family.values())


def find_peers(names: Sequence[str]) -> list[Contender]:
    """NAME is a peer in its default, NAME+SETTING in that setting, NAME+ in its default and in all its settings.
    `all`: all that are here, in all settings; `default`: all in their defaults; `newest`: the newest of each allocator,
    in its default; `newest+`: in all its settings; `hardened`: those against attackers. One that is named must be
    here; a group has what is."""
    made: dict[str, Contender] = {}
    for name in names:
        base, plus, setting = name.partition("+")
        if name == "all":
            group = [one for found in usable() for one in every_setting(found)]
        elif name == "default":
            group = [one for found in usable() for one in contenders(found)]
        elif base == "newest" and not setting:
            group = [one for found in newest() for one in (every_setting(found) if plus else contenders(found))]
        elif name == "hardened":
            against = [*HARDENED, *(peer for peer in PEERS if peer.family == "scudo")]
            group = [one for found in usable(against) for one in contenders(found)]
        elif plus and not setting:
            group = every_setting(find(named(base)))
        else:
            group = contenders(find(named(base)), [setting])
        made |= {contender.name: contender for contender in group}
    return list(made.values())


COLUMNS = 100


def table(all_found: Iterable[Found]) -> Table:
    rows = Table(box=None, pad_edge=False)
    for title in ("peer", "version", "from", "settings", "state"):
        rows.add_column(title, overflow="fold")
    for found in all_found:
        settings = " ".join(found.peer.settings)
        rows.add_row(found.peer.name, found.version, found.source, settings, found.lacks.partition(":")[0] or "ready")
    return rows


def files(all_found: Iterable[Found]) -> list[str]:
    """What lies where, with the beginning of its SHA-256, or how to get it. A path that is cut is of no use: it stands
    on a line of its own."""
    return [
        f"{found.peer.name:<21} {peer_build.sha256(found.library)[:12]} {found.library}"
        if found.library
        else f"{found.peer.name:<21} {found.lacks.partition(':')[2].strip()}"
        for found in all_found
        if found.library or ":" in found.lacks
    ]


def get(peer: Peer) -> None:
    """Builds it if it is ours to build, and proves that it serves in its default and in all its settings."""
    if isinstance(peer.source, Crate):
        print(f"hz: building {peer.name}…", file=sys.stderr)
        peer_build.build(peer, peer.source)
    try:
        for contender in every_setting(find(peer)):
            probe(contender)
    except LabError:
        peer_build.forget(peer)
        raise


def main(names: Sequence[str], build: bool) -> None:
    wanted = [named(name) for name in names] or [*PEERS, *HARDENED]
    failures: dict[str, list[str]] = {}
    for peer in wanted if build else []:
        try:
            get(peer)
        except LabError as error:
            failures.setdefault(str(error).removeprefix(f"{peer.name}: "), []).append(peer.name)
    found = [find(peer) for peer in wanted]
    Console(width=None if sys.stdout.isatty() else COLUMNS, highlight=False).print(table(found))
    print("\n".join(["", *files(found)]))
    if failures:
        raise LabError("; ".join(f"{' '.join(without)}: {why}" for why, without in failures.items()))
