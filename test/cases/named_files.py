# SPDX-License-Identifier: Apache-2.0
# The files that a user names for statistics and profiles: a pipe without a reader keeps no process from its end, a link
# that another user made is not followed, to a file or to a folder, links of this user and of the system are. A profile
# takes the place of an older one as a whole, or leaves it as it is.
# alone
import os
import resource
import shutil
import signal
import stat
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


def without_room() -> None:
    """For the child: no file gets longer than a few bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))


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
    (folder / "below").mkdir()
    for name, target in (("by_name", folder), ("by_way", Path("below/.."))):
        plain.unlink(missing_ok=True)
        (folder / name).symlink_to(target)
        run(kind, str(folder / name / "below/..//plain"))
        expect(plain.stat().st_size != 0, f"{kind}: a folder's link of this user is not followed: {name}")
    for stream in ("/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"):
        expect("line=" in run(kind, stream) or kind != "HZ_STATS_FILE", f"{kind}: nothing comes to {stream}")
    if os.geteuid() == 0:
        victim.write_text("important")
        link.symlink_to(victim)
        os.lchown(link, NOBODY, NOBODY)
        (folder / "behind").symlink_to(link)
        (folder / "folder").symlink_to(folder)
        os.lchown(folder / "folder", NOBODY, NOBODY)
        (folder / "mine_to_it").symlink_to(folder / "folder")
        for name in ("link", "behind", "folder/victim", "folder/unmade", "mine_to_it/victim", "folder/../victim"):
            run(kind, str(folder / name))
            expect(victim.read_text() == "important", f"{kind}: the link of another user is followed: {name}")
            expect(not (folder / "unmade").exists(), f"{kind}: a file is made behind the link of another user")


def check_stats_folder(folder: Path) -> None:
    """A folder that a link of another user leads to: its files stay, also those that are named as ours."""
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    os.lchown(folder / "link", NOBODY, NOBODY)
    victims = 'for name in stats stats.new; do echo important >"$0/real/hakozuna.$$.$name"; done'
    command = ["sh", "-c", f'{victims}; exec env HZ_STATS_DIR="$0/link" /bin/true', str(folder)]
    subprocess.run(command, stderr=subprocess.PIPE, timeout=WAITS, check=True)
    kept = [each.read_text() for each in (folder / "real").iterdir()]
    expect(kept == ["important\n"] * 2, "HZ_STATS_DIR: the link of another user is followed")


def check_replaced(kind: str, folder: Path) -> None:
    profile = folder / "profile"
    profile.write_text("old")
    profile.chmod(0o600)
    variables = {**os.environ, **KINDS[kind], kind: str(profile)}
    subprocess.run(["/bin/true"], env=variables, stderr=subprocess.PIPE, preexec_fn=without_room, check=True)
    expect(profile.read_text() == "old", f"{kind}: an old profile is lost to one that has no room")
    linked = folder / "linked"
    run(kind, str(profile))
    whole = profile.stat()
    if whole.st_size == len("old"):
        return  # the line has no such file
    expect(stat.S_IMODE(whole.st_mode) == 0o600, f"{kind}: a new profile may be read by more users than the old one")
    linked.hardlink_to(profile)
    run(kind, str(profile))
    expect(linked.samefile(profile), f"{kind}: another name of a profile names the old one")
    linked.unlink()
    if shutil.which("unshare") and os.geteuid() == 0:
        profile.write_text("old")
        mount = 'mount --bind "$0" "$0" || exit 1; exec env $1 /bin/true'
        settings = " ".join(f"{name}={value}" for name, value in {**KINDS[kind], kind: profile}.items())
        preload = f"LD_PRELOAD={os.environ['LD_PRELOAD']}" if "LD_PRELOAD" in os.environ else ""
        own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        command = ["unshare", "--mount", "sh", "-c", mount, str(profile), f"{settings} {preload}"]
        mounted = subprocess.run(command, env=own, stderr=subprocess.PIPE, timeout=WAITS, check=False)
        expect(
            mounted.returncode != 0 or profile.stat().st_size > len("old"),
            f"{kind}: a profile that is a mount point is not written",
        )
    left = [each.name for each in folder.iterdir() if each != profile]
    expect(not left, f"{kind}: files are left behind: {left}")


if os.geteuid() == 0:
    with tempfile.TemporaryDirectory() as named:
        check_stats_folder(Path(named))
for each in KINDS:
    with tempfile.TemporaryDirectory() as named:
        check(each, Path(named))
    if each != "HZ_STATS_FILE":
        with tempfile.TemporaryDirectory() as named:
            check_replaced(each, Path(named))
