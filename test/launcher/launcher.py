# SPDX-License-Identifier: Apache-2.0
#
# What the launcher's tests share. CTest tells by environment where things are: HZ_TEST_ROOT (the source tree),
# HZ_TEST_BUILD (the build tree whose libraries are used), HZ_TEST_LINES (space-separated, default first).
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(os.environ["HZ_TEST_ROOT"])
BUILD = Path(os.environ["HZ_TEST_BUILD"])
HELPERS = BUILD / "test" / "launcher"
LINES = os.environ["HZ_TEST_LINES"].split()
DEFAULT = LINES[0]


def library(line=DEFAULT):
    return BUILD / f"libhakozuna-{line}.so"


def environment(**changes):
    """Ours, without what would disturb: other HZ_ settings and preloads."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HZ_") and name != "LD_PRELOAD"}
    clean["HZ_BUILD_DIR"] = str(BUILD)
    clean.update(changes)
    return {name: value for name, value in clean.items() if value is not None}


def hz(*args, launcher=ROOT / "hz", stdin="", **changes):
    return subprocess.run([str(launcher), *map(str, args)], env=environment(**changes), input=stdin, text=True,
                          capture_output=True, timeout=240, check=False)


class Running:
    """A program started in the background, through exec done when entered, killed when left."""

    def __init__(self, command, **changes):
        self.command = [str(word) for word in command]
        self.changes = changes

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=environment(**self.changes), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.wait_until_asleep()
        return self.process.pid

    def wait_until_asleep(self):
        """`hz run` becomes the program by exec; look only once the program itself waits."""
        wanted = Path(self.command[-2]).name[:15]
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
            name, state = stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2]
            if name == wanted and state == "S":
                return
            time.sleep(0.02)
        raise TimeoutError(f"{self.command} did not settle")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
