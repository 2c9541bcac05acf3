# SPDX-License-Identifier: Apache-2.0
"""Builds a peer from crates.io with bench/peers/<name>, and keeps a record beside its library that says of what it was
built. Called by `hz peers --build`; minutes for TCMalloc, seconds for the others."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from hakozuna_lab import LabError
from hakozuna_lab.paths import ROOT
from hakozuna_lab.peer_list import Crate, Peer

SOURCES = ROOT / "bench/peers"
BUILT = ROOT / "build/peers"
RUST = (1, 90)  # the first whose linker is lld, as bench/peers/link.rs wants it; bench/peers/Cargo.toml has it, too
# What would change the flags that bench/peers and the crates choose.
FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET")


@dataclass(frozen=True)
class Record:
    version: str  # of the allocator
    crate: str  # with its version
    sha256: str  # of the library
    sources: str  # checksum of what bench/peers had for it
    rust: str
    compiler: str


def library(peer: Peer) -> Path:
    return BUILT / f"lib{peer.name}.so"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources(peer: Peer) -> str:
    """A checksum of all that decides what is built, except for the compilers."""
    shared = [SOURCES / name for name in ("Cargo.toml", "Cargo.lock", "exports.map")] + sorted(SOURCES.glob("*.rs"))
    own = sorted(path for path in (SOURCES / peer.name).rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in shared + own)).hexdigest()


def read_record(peer: Peer) -> Record | None:
    try:
        return Record(**json.loads((BUILT / f"{peer.name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def forget(peer: Peer) -> None:
    """Without its record a library is not used."""
    (BUILT / f"{peer.name}.json").unlink(missing_ok=True)


def find_cargo() -> str:
    """Cargo of the path, or where rustup puts it. LabError says what is missing."""
    places = os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / ".cargo/bin")])
    cargo = shutil.which("cargo", path=places)
    if cargo is None:
        raise LabError("no cargo (Rust); https://rustup.rs has it")
    version = first_line([cargo, "--version"])
    numbers = re.match(r"cargo (\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < RUST:
        raise LabError(f"{version or cargo} is too old: Rust {RUST[0]}.{RUST[1]} is needed; https://rustup.rs has it")
    return cargo


def first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=SOURCES)
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""


def environment(cargo: str) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in FLAGS}
    # cargo looks for rustc in the path.
    return env | {"PATH": os.pathsep.join([str(Path(cargo).parent), env.get("PATH", "")])}


def version_of(peer: Peer, crate: Crate, cargo: str) -> tuple[str, str]:
    """The version of the allocator and that of the crate, both as the sources have it."""
    platform = f"{os.uname().machine}-unknown-linux-gnu"
    command = [cargo, "metadata", "--format-version", "1", "--locked", "--filter-platform", platform]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=SOURCES, env=environment(cargo))
    if done.returncode != 0:
        raise LabError(f"{peer.name}: cargo could not tell the versions: {done.stderr.strip()[-500:]}")
    package = next(entry for entry in json.loads(done.stdout)["packages"] if entry["name"] == crate.name)
    text = package["version"]
    if crate.version_file:
        text = (Path(package["manifest_path"]).parent / crate.version_file).read_text(encoding="utf-8")
    found = re.search(crate.version, text, re.DOTALL)
    if found is None:
        raise LabError(f"{peer.name}: {crate.version_file or 'the crate'} does not tell its version")
    return ".".join(found.groups()), package["version"].partition("+")[0]


def build(peer: Peer, crate: Crate) -> Path:
    """Builds the library anew where its sources have changed; cargo knows. LabError if it cannot be built."""
    cargo = find_cargo()
    BUILT.mkdir(parents=True, exist_ok=True)
    log = BUILT / f"{peer.name}.log"
    # In the peer's folder, where cargo finds the peer's own .cargo/config.toml.
    command = [cargo, "build", "--release", "--locked", "--target-dir", str(BUILT / "cargo")]
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            command, cwd=SOURCES / peer.name, env=environment(cargo), stdout=out, stderr=out, check=False
        )
    if done.returncode != 0:
        raise LabError(f"{peer.name}: cargo could not build it; see {log}")
    version, crate_version = version_of(peer, crate, cargo)
    made = BUILT / "cargo/release" / f"libpeer_{peer.name.replace('-', '_')}.so"
    record = Record(
        version=version,
        crate=f"{crate.name} {crate_version}",
        sha256=sha256(made),
        sources=sources(peer),
        rust=first_line([str(Path(cargo).with_name("rustc")), "--version"]),
        compiler=first_line([os.environ.get("CC", "cc"), "--version"]),
    )
    # Renamed into place: a process that has the old library mapped keeps it.
    staged = library(peer).with_suffix(".new")
    shutil.copyfile(made, staged)
    staged.replace(library(peer))
    (BUILT / f"{peer.name}.json").write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")
    return library(peer)
