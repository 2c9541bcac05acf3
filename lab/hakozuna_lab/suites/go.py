# SPDX-License-Identifier: Apache-2.0
"""Go's tests of what calls C, as its distribution brings them along: runtime/cgo and cmd/cgo/internal. The tests'
programs are served, the tools that build them are not. Some minutes a turn, most of them the compiler's."""

import json
from collections.abc import Mapping
from pathlib import Path

from hakozuna_lab.suites import sources
from hakozuna_lab.suites.suite import FAILED, PASSED, SKIPPED, AbsentError, Case, Ready, Suite, Turn

PACKAGES = (
    "runtime/cgo", "os/user", "net", "plugin", "cmd/cgo/internal/test", "cmd/cgo/internal/testlife",
    "cmd/cgo/internal/teststdio", "cmd/cgo/internal/testtls", "cmd/cgo/internal/testnocgo",
)  # fmt: skip
WORDS = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


def prepare(cache: Path) -> Ready:
    go = sources.need_program("go")
    root = Path(sources.said([go, "env", "GOROOT"]))
    if not (root / "src/cmd/cgo/internal/test").is_dir():
        raise AbsentError(f"{root} has no cmd/cgo/internal, the tests of Go from 1.21 on")
    (cache / "go").mkdir(exist_ok=True)
    return Ready(sources.said([go, "env", "GOVERSION"]), root / "src")


def command(ready: Ready, turn: Turn) -> list[str]:
    served = [f"-exec=env {name}={value}" for name, value in turn.preload().items()]
    words = ["env", "-u", "LD_PRELOAD", "CGO_ENABLED=1", f"GOCACHE={Path.home()}/.cache/go-build", "GOTOOLCHAIN=local"]
    return [*words, "go", "test", "-json", "-short", "-p=1", "-count=1", *served, *(turn.units or PACKAGES)]


def read(text: str) -> Mapping[str, Case]:
    tests: dict[str, Case] = {}
    for line in text.splitlines():
        try:
            event = json.loads(line) if line.startswith("{") else {}
        except json.JSONDecodeError:
            continue  # it was ended in the middle of a line
        if event.get("Action") in WORDS and "Package" in event:
            name = " ".join(filter(None, (event["Package"], event.get("Test", ""))))
            tests[name] = Case(WORDS[event["Action"]], event["Package"])
    return tests


GO = Suite("go", "Go's tests of cgo", prepare, command, read, 3600)
