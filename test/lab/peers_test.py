# SPDX-License-Identifier: Apache-2.0
"""Peers: that each which is here serves all of malloc, in every setting; that a library which does not is found out;
and what a name, a group and a record mean. Nothing is built here: what is not on the machine is skipped."""

import dataclasses
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from hakozuna_lab import LabError, peer_build, peer_list, peers
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import ROOT
from hakozuna_lab.peer_list import CPUS, HARDENED, PEERS, Crate, Package, Peer
from hakozuna_lab.peer_probe import FAMILY, probe
from hakozuna_lab.peers import Found, contenders, find, find_crate, find_peers

JEMALLOC_OF_OURS = next(peer for peer in PEERS if peer.name == "jemalloc")


def here(peer: Peer) -> Found:
    found = find(peer)
    if found.lacks:
        pytest.skip(f"{peer.name}: {found.lacks}")
    return found


def shared_library(folder: Path, code: str) -> Path:
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    library = folder / "libtried.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"], input=code, text=True, check=True)
    return library


LISTED = (*PEERS, *HARDENED)
CASES = [(peer, setting) for peer in LISTED for setting in ("", *peer.settings)]


@pytest.mark.parametrize(("peer", "setting"), CASES, ids=[f"{peer.name}+{setting}" for peer, setting in CASES])
def test_a_peer_serves_every_function(peer: Peer, setting: str) -> None:
    found = here(peer)
    record = probe(contenders(found, [setting])[0])
    assert set(record["family"]) == set(FAMILY)
    served = Path(record["allocator_file"])
    assert served.samefile(found.library) if found.library else served.name.startswith("libc.so")


OWN_NAMES = {
    "mimalloc2": "mi_malloc",
    "mimalloc3": "mi_malloc",
    "mimalloc3-secure": "mi_malloc",
    "rpmalloc": "rpmalloc",
    "snmalloc": "sn_malloc",
    "snmalloc-check": "sn_malloc",
    "tcmalloc": "TCMallocInternalMalloc",
}


@pytest.mark.parametrize("name", OWN_NAMES)
def test_malloc_is_the_allocators_own_function(name: str) -> None:
    """Another name of the same address: nothing of ours stands between."""
    found = here(next(peer for peer in LISTED if peer.name == name))
    if not shutil.which("nm"):
        pytest.skip("no nm")
    done = subprocess.run(["nm", str(found.library)], capture_output=True, text=True, check=True)
    symbols = {row[2]: row[0] for row in map(str.split, done.stdout.splitlines()) if len(row) == 3}
    assert symbols["malloc"] == symbols[OWN_NAMES[name]]


def test_a_preload_that_is_not_in_effect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"gone: asked for .*/gone.so, but malloc came from .*libc"):
        probe(Contender("gone", tmp_path / "gone.so"))


def test_a_library_without_malloc_is_an_error(tmp_path: Path) -> None:
    library = shared_library(tmp_path, "int of_no_use(void) { return 1; }\n")
    with pytest.raises(LabError, match=r"tried: asked for .*/libtried.so, but malloc came from .*libc"):
        probe(Contender("tried", library))


def test_a_library_with_a_part_of_the_family_is_an_error(tmp_path: Path) -> None:
    # It hands on to glibc, so that the process lives and only the probe can tell.
    code = "void *__libc_malloc(unsigned long);\nvoid *malloc(unsigned long n) { return __libc_malloc(n); }\n"
    with pytest.raises(LabError, match=r"malloc came from .*/libtried.so, but free from .*libc"):
        probe(Contender("tried", shared_library(tmp_path, code)))


def test_a_library_that_lies_about_its_blocks_is_an_error(tmp_path: Path) -> None:
    wrapped = {"malloc": "size_t n", "calloc": "size_t n, size_t m", "realloc": "void *p, size_t n"}
    wrapped |= {"memalign": "size_t a, size_t n", "valloc": "size_t n"}
    code = "#include <stddef.h>\nvoid __libc_free(void *);\nvoid free(void *p) { __libc_free(p); }\n"
    for name, parameters in wrapped.items():
        arguments = ", ".join(re.findall(r"\w+(?=,|$)", parameters))
        code += (
            f"void *__libc_{name}({parameters});\nvoid *{name}({parameters}) {{ return __libc_{name}({arguments}); }}\n"
        )
    code += "void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }\n"
    code += "int posix_memalign(void **p, size_t a, size_t n) { return !(*p = memalign(a, n)); }\n"
    code += "size_t malloc_usable_size(void *p) { return 0; }\n"
    with pytest.raises(LabError, match=r"tried: the probe ended with 1: a block of 1 bytes, alignment 8"):
        probe(Contender("tried", shared_library(tmp_path, code)))


def test_jemalloc_knows_every_option_of_its_settings() -> None:
    """It ignores what it does not know, unless it is asked not to."""
    found = here(JEMALLOC_OF_OURS)
    for contender in contenders(found, found.peer.settings):
        strict = {"MALLOC_CONF": contender.env["MALLOC_CONF"] + ",abort_conf:true"}
        probe(dataclasses.replace(contender, env=strict))
    with pytest.raises(LabError, match="Invalid conf pair"):
        probe(dataclasses.replace(contenders(found)[0], env={"MALLOC_CONF": "no_such:true,abort_conf:true"}))


def test_names_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    crate, package = Crate("of_crates"), Package("of_debian", "")
    listed = (
        Peer("glibc", "glibc", None),
        Peer("new", "one", crate, env={"A": "0"}, settings={"fast": {"A": "1"}, "small": {"B": "1"}}),
        Peer("old", "one", package),
        Peer("gone", "other", package),
        Peer("hard", "scudo", package),
    )
    hardened = (Peer("harder", "one", crate),)
    lacks = {"gone": "not installed"}
    for module in (peers, peer_list):
        monkeypatch.setattr(module, "PEERS", listed)
        monkeypatch.setattr(module, "HARDENED", hardened)
    monkeypatch.setattr(peers, "find", lambda peer: Found(peer, Path("/x"), "1", "", lacks.get(peer.name, "")))
    names = {
        "default": ["glibc", "new", "old", "hard"],
        "all": ["glibc", "new", "new+fast", "new+small", "old", "hard"],
        "newest": ["glibc", "new", "hard"],
        "newest+": ["glibc", "new", "new+fast", "new+small", "hard"],
        "hardened": ["harder", "hard"],
        "new+": ["new", "new+fast", "new+small"],
        "new+small": ["new+small"],
        "old": ["old"],
    }
    assert {name: [contender.name for contender in find_peers([name])] for name in names} == names
    assert [contender.name for contender in find_peers(["old", "new", "old"])] == ["old", "new"]
    fast = find_peers(["new+fast"])[0]
    assert (fast.base, fast.env, find_peers(["new+small"])[0].env) == ("new", {"A": "1"}, {"A": "0", "B": "1"})
    for name, message in {
        "nosuch": "there is no peer 'nosuch'; the peers are: glibc new old gone hard harder",
        "new+odd": "new has no setting 'odd'; it has: fast small",
        "old+odd": "old has no setting 'odd'; it has: none",
        "gone": "gone: not installed",
    }.items():
        with pytest.raises(LabError, match=f"^{re.escape(message)}$"):
            find_peers([name])


def test_only_the_library_that_was_built_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peer_build, "BUILT", tmp_path)
    peer, crate = JEMALLOC_OF_OURS, Crate("tikv-jemalloc-sys")
    assert "not built" in find_crate(peer, crate).lacks
    library = peer_build.library(peer)
    library.write_bytes(b"built")
    record = peer_build.Record("5.3.1", "crate 1", peer_build.sha256(library), peer_build.sources(peer), "", "")
    (tmp_path / "jemalloc.json").write_text(json.dumps(dataclasses.asdict(record)), encoding="utf-8")
    assert find_crate(peer, crate).lacks == ""
    library.write_bytes(b"another")
    assert "not the one that was built" in find_crate(peer, crate).lacks
    changed = dataclasses.replace(record, sources="other")
    (tmp_path / "jemalloc.json").write_text(json.dumps(dataclasses.asdict(changed)), encoding="utf-8")
    assert "has changed" in find_crate(peer, crate).lacks
    peer_build.forget(peer)
    assert "not built" in find_crate(peer, crate).lacks


def test_a_build_does_not_take_the_flags_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CFLAGS", "RUSTFLAGS"):
        monkeypatch.setenv(name, "-march=native")
    assert "-march=native" not in peer_build.environment("/opt/bin/cargo").values()


def test_without_a_new_enough_rust_the_message_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LabError, match=r"^no cargo"):
        peer_build.find_cargo()
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho cargo 1.65.0\n", encoding="utf-8")
    cargo.chmod(0o755)
    with pytest.raises(LabError, match=r"cargo 1.65.0 is too old: Rust 1.90 is needed"):
        peer_build.find_cargo()


def test_the_list_and_the_workspace_agree() -> None:
    workspace = tomllib.loads((peer_build.SOURCES / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    crates = {peer.name: peer.source.name for peer in LISTED if isinstance(peer.source, Crate)}
    assert sorted(crates) == sorted(workspace["members"])
    assert workspace["package"]["rust-version"] == ".".join(map(str, peer_build.RUST))
    lock = tomllib.loads((peer_build.SOURCES / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    locked = {entry["name"]: entry["version"].partition("+")[0] for entry in lock}
    for name, crate in crates.items():
        manifest = tomllib.loads((peer_build.SOURCES / name / "Cargo.toml").read_text(encoding="utf-8"))
        assert manifest["dependencies"][crate]["version"] == f"={locked[crate]}", "every crate is pinned"
        assert manifest["package"]["name"] == f"peer-{name}"


def test_the_page_has_every_peer_version_and_setting() -> None:
    page = (ROOT / "doc/peers.md").read_text(encoding="utf-8")
    lock = tomllib.loads((peer_build.SOURCES / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    locked = {entry["name"]: entry["version"].partition("+")[0] for entry in lock}
    for peer in LISTED:
        assert f"| `{peer.name}` |" in page
        if isinstance(peer.source, Crate):
            assert f"{peer.source.name} {locked[peer.source.name]}" in page
        for setting, env in peer.settings.items():
            assert f"`{setting}`" in page
            for key, value in env.items():
                assert f"`{key}={value.removesuffix(str(CPUS))}" in page
