# SPDX-License-Identifier: Apache-2.0
"""The allocators to compare with: where each comes from, and the settings that its own documentation offers. A setting
is a contender of its own; keys and meanings are the documentation's. doc/peers.md says what could not be had."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hakozuna_lab import UsageError

CPUS = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Crate:
    """Of crates.io, built by bench/peers/<name of the peer>. The version is what the groups of `version` match in
    `version_file`, a file of the crate, or in the crate's own version."""

    name: str
    version: str = r"^([^+]*)"
    version_file: str = ""


@dataclass(frozen=True)
class Package:
    """Of Debian: `name` is a pattern of package names, `files` one of the library's path; the newest counts."""

    name: str
    files: str


@dataclass(frozen=True)
class Peer:
    name: str
    family: str  # peers of one family are one allocator; the list has the newest first
    source: Crate | Package | None  # None: the C library
    env: Mapping[str, str] = field(default_factory=dict)  # needed for what its project calls the default
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


# "Notable runtime options" and "Examples" in https://github.com/jemalloc/jemalloc/blob/dev/TUNING.md
JEMALLOC = {
    "background": {"MALLOC_CONF": "background_thread:true"},
    "cpu": {"MALLOC_CONF": "background_thread:true,metadata_thp:auto,dirty_decay_ms:30000,muzzy_decay_ms:30000"},
    "memory": {
        "MALLOC_CONF": f"background_thread:true,tcache_max:4096,dirty_decay_ms:5000,muzzy_decay_ms:5000,narenas:{CPUS}"
    },
}
# https://microsoft.github.io/mimalloc/environment.html: nothp "disables transparent huge pages", purge0 "purges
# immediately when a page becomes unused", nopurge "disables purging completely".
MIMALLOC = {
    "nothp": {"MIMALLOC_ALLOW_THP": "0"},
    "purge0": {"MIMALLOC_PURGE_DELAY": "0"},
    "nopurge": {"MIMALLOC_PURGE_DELAY": "-1"},
}
# Both from https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html: hugetlb=1 asks for
# transparent huge pages, tcache_count is what a thread caches of each size, arena_max bounds the arenas.
GLIBC = {
    "thp": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "tcache": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=512"},
    "arenas": {"GLIBC_TUNABLES": f"glibc.malloc.arena_max={CPUS}"},
}
# TCMalloc caches per CPU where it can register restartable sequences
# (https://github.com/google/tcmalloc/blob/master/docs/overview.md), which glibc otherwise does first
# (https://sourceware.org/glibc/manual/latest/html_node/POSIX-Thread-Tunables.html, glibc.pthread.rseq).
PER_CPU = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
# The crate adds madvise(MADV_HUGEPAGE) and this switch (https://docs.rs/crate/tcmalloc-better/latest/features), since
# TCMalloc wants huge pages always (https://google.github.io/tcmalloc/tuning.html, "System-Level Optimizations").
NO_THP = {"TCMALLOC_DISABLE_MADV_HUGEPAGE": "1"}
TCMALLOC = {"percpu": PER_CPU, "thp": {"TCMALLOC_DISABLE_MADV_HUGEPAGE": "0"}}
TCMALLOC["percpu-thp"] = PER_CPU | TCMALLOC["thp"]
# https://gperftools.github.io/gperftools/tcmalloc.html, "Modifying Runtime Behavior": larger thread caches for many
# threads; all free spans go back to the kernel.
GPERFTOOLS = {
    "cache": {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": str(256 << 20)},
    "decommit": {"TCMALLOC_AGGRESSIVE_DECOMMIT": "1"},
}
# https://llvm.org/docs/ScudoHardenedAllocator.html, "Options": a negative interval disables reclaiming.
SCUDO = {
    "norelease": {"SCUDO_OPTIONS": "release_to_os_interval_ms=-1"},
    "release0": {"SCUDO_OPTIONS": "release_to_os_interval_ms=0"},
}

MIMALLOC_VERSION = r"mi_version_major (\d+)\).*?mi_version_minor (\d+)\).*?mi_version_patch (\d+)\)"
LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"
SCUDO_FILES = f"/usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.scudo_standalone-{os.uname().machine}.so"

PEERS: Sequence[Peer] = (
    Peer("glibc", "glibc", None, settings=GLIBC),
    Peer("jemalloc", "jemalloc", Crate("tikv-jemalloc-sys", r"\+([\d.]+)"), settings=JEMALLOC),
    Peer("debian-jemalloc", "jemalloc", Package("libjemalloc2", f"{LIBRARIES}/libjemalloc.so.2"), settings=JEMALLOC),
    Peer(
        "mimalloc3",
        "mimalloc",
        Crate("libmimalloc-sys2", MIMALLOC_VERSION, "c_src/mimalloc3/cmake/mimalloc-config-version.cmake"),
        settings=MIMALLOC,
    ),
    Peer(
        "mimalloc2",
        "mimalloc",
        Crate("libmimalloc-sys2", MIMALLOC_VERSION, "c_src/mimalloc/cmake/mimalloc-config-version.cmake"),
        settings=MIMALLOC,
    ),
    # Before 2.1 none of the settings above exists.
    Peer("debian-mimalloc", "mimalloc", Package("libmimalloc[0-9.]*", f"{LIBRARIES}/libmimalloc.so.[0-9]*")),
    # Neither snmalloc nor rpmalloc has a setting that is read when a program starts.
    Peer("snmalloc", "snmalloc", Crate("snmalloc-sys")),
    Peer("rpmalloc", "rpmalloc", Crate("rpmalloc-sys", r"^([\d.]+)", "rpmalloc/CHANGELOG")),
    Peer("tcmalloc", "tcmalloc", Crate("libtcmalloc-sys"), env=NO_THP, settings=TCMALLOC),
    Peer(
        "debian-tcmalloc",
        "gperftools",
        Package("libtcmalloc-minimal4*", f"{LIBRARIES}/libtcmalloc_minimal.so.4"),
        settings=GPERFTOOLS,
    ),
    Peer("debian-scudo", "scudo", Package("libclang-rt-*-dev", SCUDO_FILES), settings=SCUDO),
)
# Built against attackers, for line secure; in no group but `hardened`, where debian-scudo joins them.
HARDENED: Sequence[Peer] = (
    Peer("hardened_malloc", "hardened_malloc", Crate("hardened-malloc-sys")),
    Peer("hardened_malloc-light", "hardened_malloc", Crate("hardened-malloc-sys")),
    Peer(
        "mimalloc3-secure",
        "mimalloc",
        Crate("libmimalloc-sys2", MIMALLOC_VERSION, "c_src/mimalloc3/cmake/mimalloc-config-version.cmake"),
    ),
    Peer("snmalloc-check", "snmalloc", Crate("snmalloc-sys")),
)


def named(name: str) -> Peer:
    """Errors: UsageError if there is none."""
    listed = (*PEERS, *HARDENED)
    for peer in listed:
        if peer.name == name:
            return peer
    raise UsageError(f"there is no peer '{name}'; the peers are: {' '.join(peer.name for peer in listed)}")


def check_setting(peer: Peer, setting: str) -> None:
    """Errors: UsageError if the peer has no such setting."""
    if setting and setting not in peer.settings:
        raise UsageError(f"{peer.name} has no setting '{setting}'; it has: {' '.join(peer.settings) or 'none'}")


def check_names(names: Iterable[str], groups: bool = True) -> None:
    """Errors: UsageError if one is neither a peer, with a setting or without, nor the name of a group."""
    for name in names:
        if not groups or name not in ("all", "default", "newest", "newest+", "hardened"):
            base, plus, setting = name.partition("+")
            check_setting(named(base if groups else name), setting if plus else "")
