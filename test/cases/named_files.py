# SPDX-License-Identifier: Apache-2.0
# The files that a user names for statistics and profiles: a pipe without a reader keeps no process from its end, a link
# that another user made is not followed, links of this user and of the system are.
# alone
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {
    "HZ_STATS_FILE": {},
    "HZ_PROFILE": {"HZ_POLICY": "observe"},
    "HZ_PROFILE_HEAP_FILE": {},
}
NOBODY = 65534
WAITS = 5  # seconds


def run(kind: str, path: str) -> str:
    """What /bin/true writes to its error stream, a pipe."""
    variables = {**os.environ, **KINDS[kind], kind: path}
    done = subprocess.run(["/bin/true"], env=variables, stderr=subprocess.PIPE, text=True, timeout=WAITS, check=True)
    return done.stderr


def expect(is_right: bool, what: str) -> None:
    if not is_right:
        sys.exit(what)


def check(kind: str, folder: Path) -> None:
    plain, fifo, victim, link = (folder / name for name in ("plain", "fifo", "victim", "link"))
    run(kind, str(plain))
    if not plain.exists():
        return  # the line has no such file
    os.mkfifo(fifo)
    run(kind, str(fifo))
    for target, name in ((plain, "mine"), (Path("plain"), "relative"), (folder / "new", "dangling")):
        plain.unlink(missing_ok=True)
        (folder / name).symlink_to(target)
        (folder / f"{name}2").symlink_to(name)
        run(kind, str(folder / f"{name}2"))
        expect((folder / target).stat().st_size != 0, f"{kind}: a link of this user is not followed: {name}")
    for stream in ("/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"):
        expect("line=" in run(kind, stream) or kind != "HZ_STATS_FILE", f"{kind}: nothing comes to {stream}")
    if os.geteuid() == 0:
        victim.write_text("important")
        link.symlink_to(victim)
        os.lchown(link, NOBODY, NOBODY)
        (folder / "behind").symlink_to(link)
        for name in ("link", "behind"):
            run(kind, str(folder / name))
            expect(victim.read_text() == "important", f"{kind}: the link of another user is followed: {name}")


for each in KINDS:
    with tempfile.TemporaryDirectory() as named:
        check(each, Path(named))
