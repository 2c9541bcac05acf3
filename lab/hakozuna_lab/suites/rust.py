# SPDX-License-Identifier: Apache-2.0
"""Rust's tests of `alloc` and `std`, whose sources rustup has (rust-src). Its programs allocate by malloc, calloc,
realloc and posix_memalign. Compiled by the installed cargo, which is told to take what is unstable (RUSTC_BOOTSTRAP): a
minute at first, then two or three a turn."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import FAILED, PASSED, SKIPPED, AbsentError, Case, Ready, Suite, Turn

SECONDS = 1800  # of one program
WORDS = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}
LINE = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b")


def library(cache: Path) -> Path:
    """The sources of Rust's libraries, beside the toolchain that compiles them."""
    rustc = sources.need_program("rustc")
    found = Path(sources.said([rustc, "--print", "sysroot"])) / "lib/rustlib/src/rust/library"
    if not (found / "alloctests").is_dir():
        sources.must("rustup", [sources.need_program("rustup"), "component", "add", "rust-src"], cache / "rust.log")
    if not (found / "alloctests").is_dir():
        raise AbsentError(f"{found} has no alloctests, the tests of Rust from 1.90 on")
    return found


def tests(folder: Path) -> dict[str, Path]:
    """By the program's name."""
    std = [*folder.glob("std/tests/*.rs"), *folder.glob("std/tests/*/lib.rs")]
    named = {f"std_{(path.parent if path.name == 'lib.rs' else path).stem}".replace("-", "_"): path for path in std}
    for path in (folder / "alloctests/tests").glob("*.rs"):
        if path.name in ("lib.rs", "vec_deque_alloc_error.rs"):
            named["alloc" if path.name == "lib.rs" else path.stem] = path
    return dict(sorted(named.items()))


def manifest(folder: Path) -> str:
    """Of a package whose tests they are, with the crates that theirs asks for."""
    theirs = tomllib.loads((folder / "alloctests/Cargo.toml").read_text(encoding="utf-8"))
    lines = ['[package]\nname = "of-others"\nversion = "0.0.0"', f'edition = "{theirs["package"]["edition"]}"']
    lines += ["[lib]\npath = 'lib.rs'", "[dev-dependencies]"]
    for name, wanted in theirs["dev-dependencies"].items():
        if isinstance(wanted, str):
            lines.append(f'{name} = "{wanted}"')
            continue
        features = "true" if wanted.get("default-features", True) else "false"
        lines.append(
            f'{name} = {{ version = "{wanted["version"]}", default-features = {features},'
            f" features = {json.dumps(wanted.get('features', []))} }}"
        )
    for name, path in tests(folder).items():
        lines.append(f"[[test]]\nname = '{name}'\npath = '{path}'")
    return "\n".join(lines) + "\n"


def prepare(cache: Path) -> Ready:
    cargo = sources.need_program("cargo")
    folder = library(cache)
    version = sources.said(["rustc", "--version"]).removeprefix("rustc ").split(" ")[0]
    package = cache / f"rust_{version}"
    programs = package / "programs"
    if not programs.exists():
        package.mkdir(exist_ok=True)
        (package / "lib.rs").touch()
        (package / "Cargo.toml").write_text(manifest(folder), encoding="utf-8")
        part = package / "programs.part"
        part.mkdir(exist_ok=True)
        # One that does not compile here is left out; the log has why.
        command = [cargo, "build", "--tests", "--keep-going", "--message-format=json"]
        with (cache / "rust.log").open("ab") as log:
            told = os.environ | {"RUSTC_BOOTSTRAP": "1"}
            built = subprocess.run(command, cwd=package, env=told, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=log, check=False)  # fmt: skip
        for line in built.stdout.decode().splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("executable") and "test" in said["target"]["kind"]:
                link = part / said["target"]["name"]
                link.unlink(missing_ok=True)
                link.symlink_to(said["executable"])
        if not any(part.iterdir()):
            raise AbsentError(f"none of its tests compiles here (why stands in {cache / 'rust.log'})")
        part.rename(programs)
    return Ready(version, package)


def command(ready: Ready, turn: Turn) -> list[str]:
    programs = ready.folder / "programs"
    named = [programs / unit for unit in turn.units] or sorted(programs.iterdir())
    return sources.one_by_one(turn.work, SECONDS, "env", named)


def read(text: str) -> Mapping[str, Case]:
    tests: dict[str, Case] = {}
    program = ""
    for line in text.splitlines():
        if line.startswith("--- exit code"):
            tests[f"{program} (its end)"] = Case(FAILED, program)
        elif line.startswith("--- "):
            program = Path(line[4:]).name
        elif found := LINE.match(line):
            tests[f"{program} {found[1]}"] = Case(WORDS[found[2]], program)
    return tests


RUST = Suite("rust", "Rust's tests of alloc and std", prepare, command, read, 5400)
