# SPDX-License-Identifier: Apache-2.0
"""What any user may put into his process, and into files: no look waits for it, none fails but by a sentence, and no
process hides another. What is damaged at random is damaged alike in each run."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import heap_profiles
import pytest
from hakozuna_observe import control, find, layout, openmetrics, picture, prof, profile, stats_file, text
from hakozuna_observe import process as processes
from hakozuna_observe.process import Process, UnreadableError, UnseenError
from hakozuna_observe.symbols import Names
from holders import BUILD, LINES, Held, Holders, as_user, hz, library

pytest_plugins = ("holders",)

# What a field may hold that a reader does not expect.
EXTREMES = tuple(value.to_bytes(8, "little") for value in (0, 1, 255, 1 << 16, (1 << 32) - 1, 1 << 62, (1 << 64) - 1))
ESCAPES = "\x1b]0;x\x07\x9b1m"


def damage(content: bytes, chance: random.Random, first: int = 0) -> bytes:
    """Some bytes behind `first` are others."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        value = chance.choice(EXTREMES)[: chance.choice((1, 2, 4, 8))]
        at = chance.randrange(first, max(len(content) - len(value), first) + 1)
        changed[at : at + len(value)] = value
    return bytes(changed[: len(content)])


class Damaged(Process):
    """A process of which some reads are damaged: those that `chosen` chooses, by their numbers."""

    def __init__(self, pid: int, chance: random.Random, chosen: Callable[[int], bool]) -> None:
        super().__init__(pid)
        self._chance, self._chosen, self._reads = chance, chosen, 0
        self.read_in_all = 0

    def read(self, at: int, count: int) -> bytes:
        """As the process has it, or not."""
        content = super().read(at, count)
        self._reads += 1
        self.read_in_all += count
        # What is no description is not looked at any further, and another version is refused at once.
        first = 12 if content.startswith(b"hzlayout") else 0
        return damage(content, self._chance, first) if self._chosen(self._reads) and len(content) > first else content


def look(process: Process) -> str:
    """All that is made of it."""
    pages = []
    for one in layout.find(process):
        shown = picture.take(process, one)
        pages += [text.render(shown), text.render(shown, everything=True), openmetrics.render([shown])]
    return "\n".join(pages)


@pytest.mark.parametrize("line", [one for one in LINES if one in ("hakozuna", "hz7")])
def test_a_damaged_process_is_shown_or_refused(line: str, hold: Holders) -> None:
    held = hold(line, HZ_BACKGROUND="0")

    class Counting(Process):
        descriptions: tuple[int, ...] = ()
        reads = 0

        def read(self, at: int, count: int) -> bytes:
            """Notes which reads are of the description."""
            content = super().read(at, count)
            self.reads += 1
            if content.startswith(b"hzlayout"):
                self.descriptions = (*self.descriptions, self.reads)
            return content

    whole = Counting(held.pid)
    look(whole)
    of_words = {*whole.descriptions, whole.descriptions[-1] + 1}
    refused = 0
    for seed in range(150):
        chance = random.Random(seed)
        rare = seed % 3 == 0
        process = Damaged(
            held.pid,
            chance,
            lambda n, r=rare, c=chance: (r and c.random() < 0.05) or (not r and n in of_words),  # type: ignore[misc]
        )
        began = time.monotonic()
        try:
            page = look(process)
            assert "\x1b" not in page
        except UnseenError as why:
            refused += 1
            assert len(str(why).splitlines()) == 1
        assert process.read_in_all < 2 << 30
        assert time.monotonic() - began < 20
    assert refused > 10


def test_a_damaged_profile_of_a_process_is_shown_or_refused(hold: Holders) -> None:
    held = hold("hakozuna", HZ_PROFILE_HEAP="4096", HZ_PROFILE_HEAP_FILE="/dev/null")
    for seed in range(30):
        chance = random.Random(seed)
        process = Damaged(held.pid, chance, lambda _, c=chance: c.random() < 0.1)  # type: ignore[misc]
        with contextlib.suppress(UnseenError):
            for one in profile._of_process(process):
                profile.write(one)


def tables_of(one: profile.Profile) -> str:
    """What `hz prof` prints of it."""
    names = Names(is_asking=False)
    named = names.of([one])
    sites = [(tuple(frame for at in site.stack for frame in named[0][at]), site.figures) for site in one.sites]
    read = prof.Read([one], names, named, sites)
    found, _ = prof.leaks(read, 1, [], 20, 100)
    return "\n".join([*prof.table(read, "live", 20, 100), *prof.lifetimes(read, 20, 100), *found, prof.as_json(read)])


def test_a_damaged_profile_is_read_or_refused(tmp_path: Path) -> None:
    whole = profile.write(
        heap_profiles.profile([((heap_profiles.BASE + 256, heap_profiles.BASE + 900), heap_profiles.figures(1 << 20))])
    ).replace("/usr/bin/made-up", f"/usr/bin/{ESCAPES}", 1)
    file = tmp_path / "one.heap"
    for seed in range(150):
        chance = random.Random(seed)
        content = bytearray(whole.encode())
        for _ in range(chance.randint(0, 3)):
            at = chance.randrange(len(content))
            content[at : at + chance.randint(0, 3)] = chance.choice((b"9" * 18, b"\x1b[2J", b"f", b"0", b" ", b"\n"))
        file.write_bytes(content)
        try:
            page = tables_of(profile.read(str(file)))
        except UnseenError as why:
            page = str(why)
        assert "\x1b" not in page
        assert "\x9b" not in page


def test_a_damaged_file_of_statistics_is_read_or_refused(tmp_path: Path) -> None:
    whole = f"hz: stats line=hz3 version=0.1.0 build=x pid=7 program={ESCAPES} counting=0 bytes_live=5 threads=1\n"
    file = tmp_path / "hakozuna.7.stats"
    for seed in range(200):
        chance = random.Random(seed)
        content = bytearray(whole.encode())
        for _ in range(chance.randint(0, 3)):
            at = chance.randrange(len(content))
            content[at : at + chance.randint(0, 3)] = chance.choice((b"9" * 5000, b"\x1b[2J", b"=", b"-1", b" ", b"\n"))
        file.write_bytes(content)
        try:
            page = text.render_file(stats_file.read(file))
        except UnseenError as why:
            page = str(why)
        assert "\x1b" not in page
        assert "\x9b" not in page


# --- what would never come to an end


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_files_that_are_no_files_are_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "hakozuna.1.stats"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for arguments in (["stat", str(path)], ["prof", str(path)], ["stat", "999999999", "--dir", str(tmp_path)]):
        began = time.monotonic()
        answer = hz(*arguments)
        assert answer.returncode in (1, 2)
        assert len(answer.stderr.splitlines()) == 1
        assert time.monotonic() - began < 20
    with pytest.raises(OSError, match="not a regular file"):
        processes.open_regular(path)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A library that may be replaced."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return Path(shutil.copy(library("hakozuna"), tmp_path / "libhakozuna-hakozuna.so"))


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
def test_what_lies_over_the_library_is_not_opened(kind: str, copy: Path, tmp_path: Path) -> None:
    """In the process's own view of the file system, which any user may have."""
    over = Path(kind)
    if kind == "fifo":
        over = tmp_path / "fifo"
        os.mkfifo(over)
    namespaces = ["--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run(["unshare", *namespaces, "true"], check=False).returncode:
        pytest.skip("needs namespaces of one's own")
    # The mount comes after the library has been loaded; the shell is its holder's parent.
    script = 'exec 3<&0; LD_PRELOAD="$2" "$1" rest <&3 3<&- & mount --bind "$3" "$2" || exit; wait'
    script = script.replace("mount", 'while ! grep -q "$2" /proc/$!/maps; do :; done; mount')
    holder = [BUILD / "test/observe/hz-holder", copy, over]
    with subprocess.Popen(
        ["unshare", *namespaces, "sh", "-c", script, "sh", *holder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        pid = int(process.stdout.readline().split()[0])
        while str(copy) not in Path(f"/proc/{pid}/mounts").read_text():
            time.sleep(0.02)
        began = time.monotonic()
        assert picture.look(pid)[0].line == "hakozuna"
        assert pid in {one.pid for one in find.Watch().look()}
        assert time.monotonic() - began < 10
        process.stdin.close()


def test_an_answer_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_PATIENCE", 0.5)
    here, there = socket.socketpair()
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.1):
            there.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(TimeoutError):
        control._whole(here)
    over.set()
    thread.join()
    here.close()
    there.close()


# --- one of many


@pytest.fixture
def damaged(hold: Holders, copy: Path) -> Held:
    """A process whose spans are of no size."""
    content = bytearray(copy.read_bytes())
    at = content.index(b"granule.bytes".ljust(24, b"\0"))
    content[at + 24 : at + 28] = bytes(4)
    copy.write_bytes(content)
    return hold("hakozuna", LD_PRELOAD=str(copy))


def test_a_damaged_process_hides_no_other(damaged: Held, hold: Holders) -> None:
    other = hold("hakozuna")
    answer = hz("stat", str(damaged.pid))
    assert answer.returncode == 1
    assert answer.stderr == f"hz: error: process {damaged.pid}: the description of its library is damaged\n"
    pids = {one.pid for one in find.Watch().look()}
    assert other.pid in pids
    assert damaged.pid not in pids


def test_a_process_that_cannot_be_read_in_time_hides_no_other(hold: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory may lie in a file system that answers no more."""
    silent, other = hold("hakozuna"), hold("hakozuna")
    over = threading.Event()
    before = Process.read

    def read(self: Process, at: int, count: int) -> bytes:
        if self.pid == silent.pid:
            over.wait(30)
            raise UnreadableError("at last")
        return before(self, at, count)

    watch = find.Watch()
    assert {silent.pid, other.pid} <= {one.pid for one in watch.look()}
    monkeypatch.setattr(Process, "read", read)
    monkeypatch.setattr(find, "_PATIENCE", 0.3)
    assert {silent.pid, other.pid} <= {one.pid for one in watch.look()}, "what was seen before is shown meanwhile"
    began = time.monotonic()
    assert other.pid in {one.pid for one in watch.look()}
    assert time.monotonic() - began < 10
    fresh = {one.pid for one in find.Watch().look()}
    assert other.pid in fresh
    assert silent.pid not in fresh
    monkeypatch.setattr(processes, "PATIENCE", 0.1)
    with pytest.raises(UnseenError, match="cannot be read within"):
        picture.look(silent.pid)
    over.set()


def test_two_heaps_of_one_name_do_not_spoil_a_scrape(hold: Holders) -> None:
    (one,) = picture.look(hold("hakozuna").pid)
    samples = [row for row in openmetrics.render([one, one]).splitlines() if not row.startswith("#")]
    assert len({row.rpartition(" ")[0] for row in samples}) == len(samples)


# --- names


@pytest.fixture
def named(tmp_path: Path) -> Iterator[int]:
    """A process whose name a terminal would act on."""
    program = tmp_path / ESCAPES
    shutil.copy(BUILD / "test/observe/hz-holder", program)
    with subprocess.Popen(
        [program],
        env=os.environ | {"LD_PRELOAD": str(library("hakozuna"))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


def test_names_are_printable(named: int) -> None:
    for arguments in (["stat"], ["stat", "--all"], ["stat", "--openmetrics"], ["stat", "--json"], ["prof"], ["doctor"]):
        answer = hz(*arguments, str(named))
        said = answer.stdout + answer.stderr
        assert "x" in said
        assert "\x1b" not in said, arguments
        assert "\x9b" not in said, arguments


# --- a library that was replaced


def test_a_library_that_was_replaced_is_looked_into(copy: Path, hold: Holders) -> None:
    """As an upgrade does it: by its user, too, to whom the kernel opens no file that has no name any more."""
    user = None if os.geteuid() else 65534
    environment = {"LD_PRELOAD": str(copy)}
    with subprocess.Popen(
        [BUILD / "test/observe/hz-holder", "rest"],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=user,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        fresh = copy.with_suffix(".new")
        fresh.write_bytes(b"another")
        fresh.rename(copy)
        assert "(deleted)" in Path(f"/proc/{process.pid}/maps").read_text()
        assert picture.look(process.pid)[0].line == "hakozuna"
        if user is not None:
            answer = as_user(user, "stat", str(process.pid))
            assert answer.returncode == 0, answer.stderr
            assert "line hakozuna" in answer.stdout
        process.stdin.close()
