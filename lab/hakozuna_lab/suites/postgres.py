# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's regression tests, by pg_regress with the distribution's server, every process of which is served. Of its
sources one file is compiled; a turn takes a few minutes of an idle processor."""

import re
from collections.abc import Mapping
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import FAILED, PASSED, AbsentError, Case, Ready, Suite, Turn, unprivileged

LINE = re.compile(r"^(?:test|    |\s+)?\s*(\S+)\s+\.\.\. (ok|FAILED)\b", re.MULTILINE)


def server() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parent.parent.name))
    if not found:
        raise AbsentError("no server of PostgreSQL in /usr/lib/postgresql")
    return found[-1].parent


def prepare(cache: Path) -> Ready:
    """The tests are in the sources, and some of their functions are C: its headers are in a package that is unpacked
    here and not installed."""
    version = server().parent.name
    package = f"postgresql-{version}"
    got = sources.debian(cache, package, sources.installed_version(package))
    log = got.folder.parent / "build.log"
    kit = sources.unpacked(cache, f"postgresql-server-dev-{version}", log)
    regress = got.folder / "src/test/regress"
    tool = server().parent / "lib/pgxs/src/test/regress/pg_regress"
    if not tool.exists():
        raise AbsentError(f"{tool} is missing")
    if not (regress / "regress.so").exists():
        headers = [f"-I{got.folder}/src/include", f"-I{kit}/usr/include/postgresql/{version}/server"]
        compiler = [
            "gcc",
            "-O1",
            "-w",
            "-Werror=implicit-function-declaration",
            "-fPIC",
            "-shared",
            *headers,
            "regress.c",
            "-o",
            "regress.so",
        ]
        sources.must("the compilation of regress.c", compiler, log, regress)
    for name in ("autoinc.so", "refint.so"):
        if not (regress / name).is_symlink():
            (regress / name).symlink_to(server().parent / "lib" / name)
    link = regress / "pg_regress"
    link.unlink(missing_ok=True)
    link.symlink_to(tool)
    return Ready(got.version, regress)


def command(ready: Ready, turn: Turn) -> list[str]:
    """All of it each time: its tests build on each other."""
    where = str(turn.work)
    user = unprivileged("postgres", turn.work)  # the server refuses root
    words = [str(ready.folder / "pg_regress"), f"--bindir={server()}", f"--temp-instance={where}/instance"]
    words += [f"--inputdir={ready.folder}", f"--outputdir={where}", f"--dlpath={ready.folder}", "--no-locale"]
    words += ["--encoding=UTF8", "--max-connections=4", f"--schedule={ready.folder}/parallel_schedule"]
    return [*user, *words]


def read(text: str) -> Mapping[str, Case]:
    return {name: Case(PASSED if word == "ok" else FAILED) for name, word in LINE.findall(text)}


POSTGRES = Suite("postgres", "PostgreSQL's regression tests", prepare, command, read, 5400)
