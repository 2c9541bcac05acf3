# SPDX-License-Identifier: Apache-2.0
"""`hz prof`: what is read of a profile, how it is named, and what the tables and files say of it."""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import heap_profiles
import pytest
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    unknown_fields,
)
from hakozuna_observe import __main__ as command
from hakozuna_observe import control, layout, perf_map, prof, profile, symbols
from hakozuna_observe.process import Process, UnseenError
from hakozuna_observe.symbols import Frame, Names, short
from heap_profiles import BASE, LIBRARY, code, figures, many
from holders import BUILD, LINES, Holders, hz

pytest_plugins = ("holders",)

STACKS = BUILD / "test/observe/hz-stacks"
LONG = os.environ.get("HZ_TEST_LONG") == "1"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`hz prof` with these arguments, in this process: its exit code, and what it wrote."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            code_ = command.main(["prof", *map(str, arguments)])
        except SystemExit as exit_:
            code_ = int(exit_.code or 0)
        return code_, *capsys.readouterr()

    return call


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    """A file of a profile."""

    def save(one: profile.Profile, name: str = "made-up.heap") -> Path:
        (tmp_path / name).write_text(profile.write(one))
        return tmp_path / name

    return save


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of hz-stacks."""
    file = tmp_path_factory.mktemp("known") / "stacks.heap"
    subprocess.run([STACKS, file], check=True)
    return file


def small() -> profile.Profile:
    return heap_profiles.profile(
        [
            ((BASE + 0x100, BASE + 0x900), figures(1 << 20)),
            ((BASE + 0x200, BASE + 0x900), figures(0, 4 << 20, samples=50, freed=50)),
            ((BASE + 0x300, BASE + 0x900), figures(4096, samples=1)),
        ]
    )


# --- files


def test_what_is_written_is_what_is_read(saved: Callable[..., Path]) -> None:
    for one in (small(), many(200, lambda chance: chance.choice((0, 1, 2, 64))), heap_profiles.profile([])):
        assert profile.read(str(saved(one))) == one


def interpreted() -> profile.Profile:
    """A stack of a C function of python, one of an extension, and two functions of a program."""
    functions = {
        profile.INTERPRETED | 1: profile.Function("Cart.add", "/shop/cärt.py", 12),
        profile.INTERPRETED | 2: profile.Function("<module>", "/shop/main.py", 3),
    }
    python, extension = BASE + (1 << 24) + 0x10, BASE + 0x20
    return heap_profiles.profile(
        [
            ((python, extension, python, *functions), figures(1 << 20)),
            ((python, *functions), figures(1 << 19)),
            ((python, profile.INTERPRETED), figures(1 << 18)),
            ((python, extension), figures(1 << 17)),
        ],
        mappings=[
            code(BASE, BASE + (1 << 24), LIBRARY),
            code(BASE + (1 << 24), BASE + (2 << 24), "/gone/libpython3.12.so.1.0"),
        ],
        functions=functions,
    )


def test_functions_of_an_interpreter(saved: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    file = saved(interpreted())
    assert profile.read(str(file)) == interpreted()
    assert file.read_text().startswith("hakozuna heap profile 2\n")
    stacks = {tuple(frame.function for frame in stack) for stack, _ in prof.read([str(file)], Names()).sites}
    assert stacks == {
        ("libmade-up.so+0x1f", "Cart.add", "<module>"),
        ("Cart.add", "<module>"),
        ("[python]",),
        ("libpython3.12.so.1.0+0xf", "libmade-up.so+0x1f"),
    }
    shown = run(file)[1]
    assert re.search(r"1\.5 MiB .* Cart\.add \(cärt\.py:12\)\n +< <module> \(main\.py:3\)", shown), shown
    assert "#0  Cart.add  /shop/cärt.py:12" in run(file, "--leaks")[1]
    out = tmp_path / "profile.pb.gz"
    run(file, "--pprof", out)
    assert {"Cart.add", "/shop/cärt.py"} <= set(decoded(out.read_bytes()).string_table)


@pytest.mark.parametrize(
    "line", ["function", "function 1 12 a\tb", "function 8000000000000001 x a\tb", "function 8000000000000001 1 a b"]
)
def test_a_function_that_is_none_is_refused(line: str, saved: Callable[..., Path], run: Run) -> None:
    file = saved(interpreted())
    file.write_text(re.sub(r"function .*", line.replace("\\", ""), file.read_text(), count=1))
    code_, _, err = run(file)
    assert code_ == 2
    assert "is none of a heap profile" in err


def test_the_name_is_the_one_that_the_program_was_started_by(saved: Callable[..., Path], run: Run) -> None:
    linked = saved(heap_profiles.profile([], name="by-a-link"), "linked.heap")
    assert run(linked)[1].startswith("by-a-link 4711: ")
    old = linked.with_name("old.heap")
    old.write_text(linked.read_text().replace("name by-a-link\n", ""))
    assert run(old)[1].startswith("made-up 4711: ")


def test_a_file_that_is_cut_off_anywhere_is_refused(saved: Callable[..., Path], tmp_path: Path) -> None:
    whole = saved(small()).read_bytes()
    cut = tmp_path / "cut.heap"
    for end in (*range(0, len(whole) - 1, 17), len(whole) - 2):
        cut.write_bytes(whole[:end])
        with pytest.raises(UnseenError) as why:
            profile.read(str(cut))
        assert why.value.code == 2
        assert len(str(why.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("profile 1\n", "profile 3\n", "of version 3, this hz reads 1 and 2"),
        ("hakozuna heap", "Hakozuna heap", "is no heap profile"),
        ("interval 65536", "interval x", "line 6 is none"),
        ("interval 65536\n", "", "without its line of interval"),
        ("dropped 0", "dropped 0\ndropped 0", "line 8 is none"),
        ("dropped 0", "dropped -1", "line 7 is none"),
        ("site 16384 ", "site 99999999999999999999 ", "line 8 is none"),
        ("site 16384 ", "site 9223372036854775808 ", "line 8 is none"),
        ("site 16384 ", "site ", "line 8 is none"),
        (" | ", " ", "line 8 is none"),
        (" | ", " |" + " 1" * 65 + " ", "line 8 is none"),
        ("| 7f", "| 7F", "line 8 is none"),
        ("0,0 |", "0 |", "line 8 is none"),
        ("map 7f", "map zz", "is none"),
        ("end\n", "end\nmore\n", "is none"),
        ("end\n", "end", "is cut off"),
    ],
)
def test_what_is_no_profile_is_refused(
    before: str, after: str, sentence: str, saved: Callable[..., Path], run: Run
) -> None:
    file = saved(small())
    content = file.read_text()
    assert before in content
    file.write_text(content.replace(before, after, 1))
    code_, out, err = run(file)
    assert code_ == 2
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert out == ""


def test_what_is_damaged_anywhere_is_read_or_refused(saved: Callable[..., Path]) -> None:
    file = saved(small())
    whole = file.read_bytes()
    chance = random.Random(7)
    refused = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 3, 30))):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.choice((0, 1, 1, 9))] = bytes(
                chance.choices(b"0123456789abcdef |,-\n\0\xff", k=chance.choice((0, 1, 1, 9)))
            )
        file.write_bytes(damaged)
        try:
            prof.table(prof.read([str(file)], Names(False)), "live", 20, 80)
        except UnseenError:
            refused += 1
    assert 100 < refused < 200


def test_much_nonsense_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    zeros, after_head = tmp_path / "zeros", tmp_path / "after-head"
    for file, head in ((zeros, b""), (after_head, b"hakozuna heap profile 1\n")):
        file.write_bytes(head)
        os.truncate(file, 100 << 20)
        began = time.monotonic()
        code_, _, err = run(file)
        assert time.monotonic() - began < 1
        assert code_ == 2
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code_", "sentence"),
    [
        (["/no/such/file"], 2, "No such file"),
        (["/"], 2, "not a regular file"),
        (["999999999"], 2, "there is no process 999999999"),
        ([], 2, "PID|FILE"),
        (["--by", "dead", "x"], 2, "invalid choice"),
        (["--top", "0", "x"], 2, "no number"),
        (["--diff", "x"], 2, "BEFORE AFTER"),
        (["--diff", "x", "y", "--pprof", "z"], 2, "pprof"),
        (["--leaks", "--at-least", "1x", "x"], 2, "is no size"),
        (["--at-least", "1", "x"], 2, "--leaks"),
        (["--leaks", "--diff", "x", "y"], 2, "not allowed"),
        (["--leaks", "--ignore", "/no/such/list", "x"], 2, "No such file"),
        (["--save", "z", "x", "y"], 2, "one profile"),
        (["9" * 5000], 2, "is no process id"),
        (["--leaks", "--by", "peak", "x"], 2, "--by"),
        (["--json", "--top", "3", "x"], 2, "--top"),
    ],
)
def test_bad_input_gets_one_line(arguments: list[str], code_: int, sentence: str, run: Run) -> None:
    found, out, err = run(*arguments)
    assert found == code_
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert out == ""


def test_a_file_that_cannot_be_written_gets_one_line(saved: Callable[..., Path], run: Run) -> None:
    code_, _, err = run(saved(small()), "--flame", "/no/such/folder/page.html")
    assert code_ == 125
    assert "No such file" in err


# --- names


def test_names_with_what_was_inlined(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [one for one in symbols._ASKED if shutil.which(one[0])]
    assert programs, "neither llvm-symbolizer nor addr2line is installed"
    for asked in programs:
        monkeypatch.setattr(symbols, "_ASKED", (asked,))
        one = prof.read([str(known)], Names())
        stack = max((stack for stack, _ in one.sites), key=len)
        assert [short(frame.function) for frame in stack] == [
            "shop::allocate",
            "shop::Cart<>::grow",
            "shop::serve",
            "main",
        ]
        assert [Path(frame.file).name for frame in stack] == ["stacks.cpp"] * 4
        assert all(frame.line > 0 and frame.module == str(STACKS) and frame.is_known for frame in stack)


def test_names_without_a_program_that_knows_lines(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "_ASKED", (("no-such-program",),))
    one = prof.read([str(known)], Names())
    stack = max((stack for stack, _ in one.sites), key=len)
    assert [short(frame.function) for frame in stack] == ["shop::Cart<>::grow", "shop::serve", "main"]
    assert {frame.file for frame in stack} == {""}


def test_stripped_files_and_their_debugging_information(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, debug = tmp_path / "stacks", tmp_path / "debug"
    shutil.copy(STACKS, program)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "-s", program], check=True)
    moved = tmp_path / "moved.heap"
    moved.write_text(known.read_text().replace(str(STACKS), str(program)))

    def names() -> list[str]:
        one = prof.read([str(moved)], Names())
        return [short(frame.function) for frame in max((stack for stack, _ in one.sites), key=len)]

    monkeypatch.setattr(symbols, "DEBUG_FILES", tmp_path / "nowhere")
    listed = subprocess.run(["nm", "-C", STACKS], capture_output=True, text=True, check=True).stdout
    begins = {short(name): int(address, 16) for address, name in re.findall(r"^(\w+) \w (.*)$", listed, re.MULTILINE)}
    assert names() == [f"stacks+{begins[name]:#x}" for name in ("shop::Cart<>::grow", "shop::serve", "main")]
    with monkeypatch.context() as without:  # as of a file that is not searched by an unwinder
        without.setattr("hakozuna_observe.elf.Image.beginnings", lambda image: [])
        assert all(re.fullmatch(r"stacks\+0x[0-9a-f]+", name) for name in names()), names()
    (one,) = prof.read([str(moved)], Names()).profiles
    build_id = Names().build_id(one, next(each for each in one.mappings if each.path == str(program)))
    assert re.fullmatch("[0-9a-f]{16,40}", build_id)
    there = tmp_path / "by-id" / build_id[:2] / f"{build_id[2:]}.debug"
    there.parent.mkdir(parents=True)
    debug.rename(there)
    monkeypatch.setattr(symbols, "DEBUG_FILES", tmp_path / "by-id")
    assert names() == ["shop::allocate", "shop::Cart<>::grow", "shop::serve", "main"]


def test_a_damaged_file_has_fewer_names_and_no_more(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symbols, "_ASKED", ())
    program, moved = tmp_path / "stacks", tmp_path / "moved.heap"
    moved.write_text(known.read_text().replace(str(STACKS), str(program)))
    whole = STACKS.read_bytes()
    sections = int.from_bytes(whole[40:48], "little")
    chance = random.Random(11)
    unnamed = 0
    for number in range(120):
        damaged = bytearray(whole[: chance.choice((len(whole), len(whole) // 2, 200, 0))])
        for _ in range(4):
            at = chance.choice((chance.randrange(64), 64 + chance.randrange(600), sections + chance.randrange(2000)))
            damaged[at : at + 8] = chance.choice((b"\0" * 8, b"\xff" * 8, chance.randbytes(8), damaged[at : at + 8]))
        program.write_bytes(damaged if number else whole)
        frames = [frame for stack, _ in prof.read([str(moved)], Names()).sites for frame in stack]
        unnamed += not all(frame.is_known for frame in frames)
        assert len(frames) == 5
    assert 20 < unnamed < 120


def test_a_file_that_changed_since_is_told(known: Path, tmp_path: Path, run: Run) -> None:
    old = tmp_path / "old.heap"
    old.write_text(known.read_text().replace("time 4000000000", "time 1000000000"))
    assert "has changed since" in run(old)[2]
    assert run(known)[2] == ""


def test_what_has_no_name_says_where_it_is() -> None:
    stack = tuple(BASE + (i << 24) + 0x11 for i in range(6))
    one = heap_profiles.profile(
        [(stack, figures(1000))],
        mappings=[
            code(BASE + (i << 24), BASE + (i + 1 << 24), path)
            for i, path in enumerate(("/gone/lib.so (deleted)", "[vdso]", "", "/memfd:jit (deleted)", "/dev/null"))
        ],
    )
    (named,) = Names().of([one])
    assert [named[at][0].function for at in stack] == [
        "lib.so+0x10",
        "[vdso]",
        "[anon]",
        "memfd:jit+0x10",
        "null+0x10",
        "[unmapped]",
    ]


def compiled(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Callable[[], list[str]]:
    """The names of a profile whose program compiled code in a mapping without a file, beside one that is gone."""
    (folder / "perf-4711.map").write_text(text)
    monkeypatch.setattr(perf_map, "path_of", lambda one: folder / f"perf-{one.pid}.map")
    stack = (BASE + 0x11, BASE + 0x41, BASE + (1 << 25) + 0x11)
    one = heap_profiles.profile([(stack, figures(1000))], mappings=[code(BASE, BASE + (1 << 24), "")])
    one.owner, one.written = os.geteuid(), int(time.time())

    def names() -> list[str]:
        (named,) = Names().of([one])
        return [f"{named[at][0].function} {named[at][0].place}".rstrip() for at in stack]

    return names


def test_compiled_functions_have_the_names_that_their_compiler_wrote(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (
        f"{BASE:x} 10 JS:~moved file:///shop.js:3:9\n{BASE:x} 20 JS:*total /shop/cart.js:12:5\n"
        f"{BASE + 0x30:x} 20 py::Cart.add:/shop/cart.py\n"
        f"0x{BASE + (1 << 25):016x} 0x{32:016x} int Cart.size(long)\n"
    )
    names = compiled(monkeypatch, tmp_path, text)
    assert names() == ["total cart.js:12", "Cart.add cart.py", "int Cart.size(long)"]
    assert perf_map.place_of("JS:^ node:internal/fs:1:2") == ("(anonymous)", "node:internal/fs", 1)
    assert perf_map.place_of("Builtin:ArrayPush") == ("Builtin:ArrayPush", "", 0)


def test_a_list_of_compiled_functions_that_is_not_the_programs_own_is_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unnamed = ["[anon]", "[anon]", "[unmapped]"]
    good = f"{BASE:x} 20 total\n"
    names = compiled(monkeypatch, tmp_path, good)
    file = tmp_path / "perf-4711.map"
    assert names()[0] == "total"
    os.utime(file, (1, 1))
    assert names() == unnamed, "it is older than the process"
    for bad in ("", f"{BASE:x}\n", f"{BASE:x} 20\n", f"-{BASE:x} 20 x\n", f"{BASE:x} fffffffff x\n", "\0" * 9000):
        file.write_text(bad)
        assert names() == unnamed
        file.write_text(bad + "\n" + good)
        assert names()[0] == "total"
    file.write_text(good[:-1])
    assert names() == unnamed, "a line that is being written"
    if os.geteuid() == 0:
        file.write_text(good)
        os.chown(file, 65534, -1)
        assert names() == unnamed, "it is another user's"
    file.unlink()
    os.mkfifo(file)
    assert names() == unnamed
    file.unlink()
    file.symlink_to("/dev/zero")
    assert names() == unnamed
    monkeypatch.setattr(perf_map, "_MOST_BYTES", len(good) + 2)
    file.unlink()
    file.write_text("\n\n" + good)
    assert names()[0] == "total"
    file.write_text("\n\n\n" + good)
    assert names() == unnamed, "too much of it"


def test_the_list_of_a_process_in_a_container_stands_in_its_root(tmp_path: Path) -> None:
    one = heap_profiles.profile([])
    assert perf_map.path_of(one) == Path("/tmp/perf-4711.map")
    one.root = tmp_path
    assert perf_map.path_of(one) == tmp_path / "root/tmp/perf-4711.map"
    (tmp_path / "status").write_text("Name:\tx\nNSpid:\t4711\t7\n")
    assert perf_map.path_of(one) == tmp_path / "root/tmp/perf-7.map"


def test_without_mappings_stacks_stay_apart(saved: Callable[..., Path], run: Run) -> None:
    one = small()
    one.mappings = []
    out = run(saved(one), "--folded", "-")[1]
    assert out.splitlines() == ["0x7f00000008ff;0x7f00000000ff 1048576", "0x7f00000008ff;0x7f00000002ff 4096"]


def test_a_return_address_at_the_end_of_a_mapping_is_in_it() -> None:
    one = heap_profiles.profile([((BASE + 0x1000,), figures(1000))], mappings=[code(BASE, BASE + 0x1000, LIBRARY)])
    assert Names().of([one])[0][BASE + 0x1000][0].function == "libmade-up.so+0xfff"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("malloc", "malloc"),
        ("libc.so+0x12", "libc.so+0x12"),
        ("[anon]", "[anon]"),
        ("shop::Cart<int>::grow(int const&)", "shop::Cart<>::grow"),
        ("void std::vector<std::pair<int, int> >::_M_realloc_insert<int>(int&&)", "std::vector<>::_M_realloc_insert<>"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ("shop::(anonymous namespace)::g<(char)62>(int)", "shop::(anonymous namespace)::g<>"),
        ("operator new(unsigned long)", "operator new"),
        ("operator new[](unsigned long)", "operator new[]"),
        ("std::ostream& operator<< <char>(std::ostream&, char)", "operator<<<>"),
        ("S::operator()(int) const", "S::operator()"),
        ("S::operator->() const", "S::operator->"),
        ("bool operator< <int>(int, int)", "operator<<>"),
        ("std::function<void (int)>::operator()(int) const", "std::function<>::operator()"),
        ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", "<alloc::vec::Vec<T> as core::clone::Clone>::clone"),
        ("core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place<>"),
        ("main.(*T).Get", "main.(*T).Get"),
        ("S::operator bool() const", "S::operator bool"),
        ("f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda}::operator()"),
        ('S operator"" _s(char const*, unsigned long)', 'operator"" _s'),
        ("std::vector<int>& f<1>(int) [clone .cold]", "f<>"),
        ("a<b", "a<b"),
        ("", ""),
    ],
)
def test_short_names(name: str, expected: str) -> None:
    assert short(name) == expected


def test_what_libraries_call_each_other_is_left_out() -> None:
    names = [
        "operator new(unsigned long)",
        "std::allocator<int>::allocate()",
        "std::vector<int>::push_back(int)",
        "mine()",
    ]
    frames = tuple(Frame(name) for name in names)
    assert [frame.function for frame in symbols.without_library(frames)] == names[2:]
    assert symbols.without_library(frames[:3]) == frames[:3]
    assert symbols.without_library(frames[3:]) == frames[3:]


# --- tables


def test_the_table(saved: Callable[..., Path], run: Run) -> None:
    code_, out, _ = run(saved(small()))
    assert code_ == 0
    lines = out.splitlines()
    assert lines[0] == "made-up 4711: line hakozuna 0.1.0, up 65 s"
    assert "live 1.0 MiB in 16,448, allocated" in lines[1]
    rows = [line for line in lines if "libmade-up.so+0x" in line and "<" not in line]
    assert len(rows) == 2
    assert rows[0].split() == ["1.0", "MiB", "99.6%", "10%", "16,384", "stays", "libmade-up.so+0xff"]
    out = run(saved(small()), "--by", "allocated")[1]
    assert "libmade-up.so+0x1ff" in next(line for line in out.splitlines() if "4.0 MiB" in line and "79.9%" in line)


@pytest.mark.parametrize("columns", [40, 80, 100, 120, 300])
@pytest.mark.parametrize("form", [[], ["--leaks"], ["--lifetimes"], ["--diff"]])
def test_lines_fit(
    form: list[str], columns: int, saved: Callable[..., Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = many(30, lambda chance: chance.choice((1, 2, 9)))
    one.mappings = [code(BASE, BASE + (1 << 24), "/usr/lib/" + "long" * 60 + ".so")]
    other = many(20, lambda chance: chance.choice((1, 2, 9)), seed=2)
    files = [saved(one), *([saved(other, "other.heap")] if form == ["--diff"] else [])]
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run(*form, *files)[1]
    assert len(out.splitlines()) > 20
    assert max(map(len, out.splitlines())) <= min(max(columns, 80), 120)
    assert all(line == line.rstrip() for line in out.splitlines())


def test_an_empty_profile_is_told(saved: Callable[..., Path], run: Run) -> None:
    file = saved(heap_profiles.profile([]))
    for form, code_ in ([], 0), (["--leaks"], 0), (["--lifetimes"], 0):
        found, out, err = run(*form, file)
        assert (found, err) == (code_, "")
        assert "no block was sampled" in out
    freed = saved(heap_profiles.profile([((BASE + 1,), figures(0, 1000))]))
    assert "nothing is live" in run(freed)[1]


def test_dropped_samples_are_told(saved: Callable[..., Path], run: Run) -> None:
    assert "too low" not in run(saved(small()))[1]
    one = small()
    one.dropped = 12
    assert "12 samples more had no room" in run(saved(one))[1]


def test_hostile_names_do_not_reach_the_terminal(saved: Callable[..., Path], run: Run) -> None:
    one = small()
    one.program = "/usr/bin/\x1b[2Jx"
    one.mappings = [code(BASE, BASE + (1 << 24), "/usr/lib/\x1b]0;x\x07.so")]
    for form in [], ["--leaks"], ["--lifetimes"]:
        out = run(*form, saved(one))[1]
        assert "\x1b" not in out
        assert "\x07" not in out


@pytest.mark.parametrize(
    ("samples", "times", "expected"),
    [
        (0, {}, "-"),
        (10, {}, "stays"),
        (10, {3: 5}, "stays"),
        (10, {3: 6}, "~10 µs"),
        (10, {0: 9}, "<2 µs"),
        (10, {11: 10}, "~3 ms"),
        (10, {20: 4, 21: 4}, "~3 s"),
        (10, {23: 10}, ">8 s"),
    ],
)
def test_lifetimes(samples: int, times: dict[int, int], expected: str) -> None:
    one = figures(0, 1000, samples=samples, freed=sum(times.values()))
    one.lifetimes = [times.get(i, 0) for i in range(profile.BUCKETS)]
    assert prof.lifetime(one) == expected


def test_the_table_of_lifetimes(known: Path, run: Run) -> None:
    out = run("--lifetimes", known)[1]
    rows = [line for line in out.splitlines() if "allocate (stacks.cpp" in line]
    assert rows[0].split()[2:6] == ["0%", "60%", "0%", "40%"]
    assert rows[1].split()[2:6] == ["100%", "0%", "0%", "0%"]


# The standard error of an estimate, against many samplings of one truth.
def test_the_error_that_is_shown_is_true() -> None:
    chance = random.Random(3)
    interval, size, blocks = 4096, 1000, 400
    taken = 1 - 2.718281828 ** (-size / interval)
    estimates, errors = [], []
    for _ in range(400):
        samples = sum(chance.random() < taken for _ in range(blocks))
        amount = int(samples * size / taken)
        one = figures(amount, samples=samples, size=size)
        estimates.append(amount)
        errors.append(one.error_of("live", interval))
    mean = sum(estimates) / len(estimates)
    spread = (sum((one - mean) ** 2 for one in estimates) / (len(estimates) - 1)) ** 0.5
    assert abs(mean / (size * blocks) - 1) < 0.03
    assert abs(sum(errors) / len(errors) / spread - 1) < 0.15


def test_several_are_summed(saved: Callable[..., Path], run: Run) -> None:
    first, second = saved(small()), saved(small(), "second.heap")
    out = run("--json", first, second)[1]
    both, alone = json.loads(out), json.loads(run("--json", first)[1])
    assert len(both["processes"]) == 2
    assert [2 * site["live_bytes"] for site in alone["sites"]] == [site["live_bytes"] for site in both["sites"]]
    assert [site["frames"] for site in alone["sites"]] == [site["frames"] for site in both["sites"]]
    assert run(first, second)[1].startswith("2 processes together: made-up\n")


def test_stacks_of_the_same_names_are_one_wherever_they_lie(saved: Callable[..., Path]) -> None:
    moved = heap_profiles.profile(
        [((0x5000_0000 + 0x100, 0x5000_0000 + 0x900), figures(1 << 20))],
        mappings=[code(0x5000_0000, 0x5100_0000, LIBRARY)],
    )
    one = prof.read([str(saved(small())), str(saved(moved, "moved.heap"))], Names())
    assert len(one.sites) == 3
    assert max(known.live_bytes for _, known in one.sites) == 2 << 20


def test_differences(saved: Callable[..., Path], run: Run) -> None:
    before = heap_profiles.profile([((BASE + i,), figures(1 << 20)) for i in (1, 2, 3)])
    after = heap_profiles.profile([((BASE + i,), figures(x << 18)) for i, x in ((1, 8), (2, 1), (4, 4))])
    after.sites.append(profile.Site((BASE + 3,), figures((1 << 20) + 1000)))
    code_, out, _ = run("--diff", saved(before), saved(after, "after.heap"))
    assert code_ == 0
    grown, shrunk = out.partition("grown:")[2].split("shrunk:")
    assert [line.split()[0] for line in grown.splitlines() if "MiB" in line] == ["+1.0", "+1.0"]
    assert [line.split()[0] for line in shrunk.splitlines() if "KiB" in line] == ["-768"]
    assert "1 site changed by no more than the choice of samples may explain" in out
    same = run("--diff", saved(before), saved(before, "after.heap"))[1]
    assert "grown: nothing" in same
    assert "shrunk: nothing" in same


# --- leaks


def test_leaks(known: Path, run: Run, tmp_path: Path) -> None:
    code_, out, _ = run("--leaks", known)
    assert code_ == 1
    assert "2.5 MiB in 40 blocks live at the end, estimated from 40 samples:" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  #")][1:] == [
        "shop::Cart<>::grow",
        "shop::serve",
        "main",
    ]
    assert run("--leaks", "--at-least", "2561K", known)[0] == 0
    assert run("--leaks", "--at-least", "2560K", known)[0] == 1
    ignore = tmp_path / "ignore"
    one = prof.read([str(known)], Names())
    for line, is_left in {
        "leak:serve": 0,
        "serve": 0,
        "leak:^main$": 0,
        "leak:^serve$": 1,
        "leak:shop::*::grow": 0,
        "shop::*::shrink": 1,
        "leak:stacks.cpp": 0,
        "leak:hz-stacks": 0,
        "Cart<int>": 0,
        "Cart.int.": 1,
        "# serve": 1,
    }.items():
        ignore.write_text(f"# those that may\n\n{line}\n")
        lines, found = prof.leaks(one, 1, prof.ignored(str(ignore)), 20, 100)
        assert found == bool(is_left), line
        assert ("; 2.5 MiB were ignored" in "\n".join(lines)) == (not found)
    ignore.write_text("serve")
    assert run("--leaks", "--ignore", ignore, known)[0] == 0
    for line, sentence in {"race:serve": "line 1: only leak:", "leak:*": "line 1: this would ignore all"}.items():
        ignore.write_text(line)
        code_, _, err = run("--leaks", "--ignore", ignore, known)
        assert code_ == 2
        assert sentence in err


# --- for other programs


def test_folded(known: Path, run: Run) -> None:
    out = run(known, "--folded", "-", "--by", "allocated")[1]
    rows = dict(line.rsplit(" ", 1) for line in out.splitlines())
    assert sorted(map(int, rows.values())) == [65536, 6553600]
    (deep,) = (stack for stack in rows if "serve" in stack)
    assert deep.split(";")[0] == "main"
    assert deep.endswith("shop::allocate(int)")


# Of profile.proto what a heap profile has: (message, [(field, number, type, is repeated)]).
_STRING, _MESSAGE, _BOOL, _NUMBER = "string", "message", "bool", "number"
_SCHEMA = {
    "ValueType": [("type", 1, _NUMBER, 0), ("unit", 2, _NUMBER, 0)],
    "Sample": [("location_id", 1, _NUMBER, 1), ("value", 2, _NUMBER, 1)],
    "Mapping": [
        *((name, i + 1, _NUMBER, 0) for i, name in enumerate(("id", "memory_start", "memory_limit", "file_offset"))),
        ("filename", 5, _NUMBER, 0),
        ("build_id", 6, _NUMBER, 0),
        ("has_functions", 7, _BOOL, 0),
        ("has_filenames", 8, _BOOL, 0),
        ("has_line_numbers", 9, _BOOL, 0),
        ("has_inline_frames", 10, _BOOL, 0),
    ],
    "Line": [("function_id", 1, _NUMBER, 0), ("line", 2, _NUMBER, 0)],
    "Location": [
        ("id", 1, _NUMBER, 0),
        ("mapping_id", 2, _NUMBER, 0),
        ("address", 3, _NUMBER, 0),
        ("line", 4, "Line", 1),
    ],
    "Function": [
        (name, i + 1, _NUMBER, 0) for i, name in enumerate(("id", "name", "system_name", "filename", "start_line"))
    ],
    "Profile": [
        ("sample_type", 1, "ValueType", 1),
        ("sample", 2, "Sample", 1),
        ("mapping", 3, "Mapping", 1),
        ("location", 4, "Location", 1),
        ("function", 5, "Function", 1),
        ("string_table", 6, _STRING, 1),
        ("time_nanos", 9, _NUMBER, 0),
        ("duration_nanos", 10, _NUMBER, 0),
        ("period_type", 11, "ValueType", 0),
        ("period", 12, _NUMBER, 0),
        ("comment", 13, _NUMBER, 1),
        ("default_sample_type", 14, _NUMBER, 0),
    ],
}


def decoded(content: bytes):  # type: ignore[no-untyped-def]
    """What the runtime of protocol buffers makes of it."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="pprof", syntax="proto3")
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if is_repeated else 1)
            added.type = {_STRING: kinds.TYPE_STRING, _BOOL: kinds.TYPE_BOOL, _NUMBER: kinds.TYPE_INT64}.get(
                kind, kinds.TYPE_MESSAGE
            )
            if added.type == kinds.TYPE_MESSAGE:
                added.type_name = f".pprof.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))
    return kind.FromString(gzip.decompress(content))


def test_pprof(known: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "profile.pb.gz"
    assert run(known, "--pprof", out)[0] == 0
    one = decoded(out.read_bytes())
    everything = [one, *one.sample_type, *one.sample, *one.mapping, *one.location, *one.function, one.period_type]
    assert all(len(unknown_fields.UnknownFieldSet(each)) == 0 for each in everything)
    texts = one.string_table
    assert texts[0] == ""
    assert [(texts[each.type], texts[each.unit]) for each in one.sample_type] == [
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("peak_objects", "count"),
        ("peak_space", "bytes"),
    ]
    assert texts[one.default_sample_type] == "inuse_space"
    assert (texts[one.period_type.type], texts[one.period_type.unit], one.period) == ("space", "bytes", 65536)
    assert (one.time_nanos, one.duration_nanos) == (4_000_000_000 * 10**9, 5 * 10**9)
    assert [list(each.value) for each in one.sample] == [
        [40, 2621440, 100, 6553600, 50, 3276800],
        [0, 0, 1000, 65536, 10, 655],
    ]
    locations, functions = ({each.id: each for each in table} for table in (one.location, one.function))
    mappings = {each.id: each for each in one.mapping}
    assert 0 not in {*locations, *functions, *mappings}
    stack = [locations[number] for number in one.sample[0].location_id]
    names = [[short(texts[functions[line.function_id].name]) for line in each.line] for each in stack]
    assert names == [["shop::allocate", "shop::Cart<>::grow"], ["shop::serve"], ["main"]]
    assert all(line.line > 0 for each in stack for line in each.line)
    program = one.mapping[0]
    assert {each.mapping_id for each in stack} == {program.id}
    assert texts[program.filename] == str(STACKS)
    noted = subprocess.run(["readelf", "-n", STACKS], capture_output=True, text=True, check=True).stdout
    assert f"Build ID: {texts[program.build_id]}" in noted
    assert program.has_functions
    assert program.has_inline_frames
    assert all(program.memory_start <= each.address < program.memory_limit for each in stack)


def test_pprof_of_many_and_of_none(saved: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    out = tmp_path / "profile.pb.gz"
    run(saved(heap_profiles.profile([])), "--pprof", out)
    assert len(decoded(out.read_bytes()).sample) == 0
    one, two = many(300, lambda chance: chance.choice((0, 1, 64))), small()
    two.mappings = [code(BASE + (1 << 24), BASE + (2 << 24), LIBRARY), code(BASE, BASE + (1 << 23), "")]
    run(saved(one), saved(two, "two.heap"), "--pprof", out)
    written = decoded(out.read_bytes())
    assert len(written.sample) == 303
    assert {len(each.location_id) for each in written.sample} == {0, 1, 2, 64}
    ids = [each.id for each in written.location]
    assert len(ids) == len(set(ids))
    assert {number for each in written.sample for number in each.location_id} == set(ids)
    anonymous = next(each for each in written.mapping if written.string_table[each.filename] == "[anon]")
    assert all(each.line for each in written.location if each.mapping_id == anonymous.id)


@pytest.mark.skipif(not LONG or shutil.which("go") is None, reason="hz endure, where Go is: it builds its pprof first")
def test_go_reads_pprof(known: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "profile.pb.gz"
    run(known, "--pprof", out)
    for kind, amount in ("inuse_space", "2.50MB"), ("alloc_space", "6.31MB"), ("peak_space", "3.13MB"):
        answer = subprocess.run(
            ["go", "tool", "pprof", "-top", f"-sample_index={kind}", out],
            env=os.environ | {"PPROF_TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert f"{amount} total" in answer, answer
        assert "shop::serve" in answer


def test_ten_thousand_sites(saved: Callable[..., Path], run: Run) -> None:
    file = saved(many(10_000, lambda chance: chance.choice((1, 20, 64))))
    began = time.process_time()
    assert run("--no-names", file)[0] == 0
    assert time.process_time() - began < 3


# --- processes


class _Entry(ctypes.Structure):
    _fields_ = (
        ("state", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in profile.COUNTS),
        ("lifetimes", ctypes.c_uint32 * profile.BUCKETS),
        ("frames", ctypes.c_uint64 * 64),
    )


class _Function(ctypes.Structure):
    _fields_ = (
        ("state", ctypes.c_uint32),
        ("line", ctypes.c_uint32),
        ("name", ctypes.c_char * 8),
        ("file", ctypes.c_char * 16),
    )


class _Words(ctypes.Structure):
    _fields_ = (
        ("interval", ctypes.c_uint64),
        ("sites", ctypes.c_void_p),
        ("dropped", ctypes.c_uint64),
        ("functions", ctypes.c_void_p),
    )


def _described(words: _Words, count: int) -> layout.Layout:
    at = ctypes.addressof(words)
    known = {
        f"profile.{name}": layout.Word(at + getattr(_Words, name).offset, 1, 8, False) for name, _ in _Words._fields_
    }
    known["site.bytes"] = layout.Word(ctypes.sizeof(_Entry), 1, 0, False)
    known["site.most"] = layout.Word(count, 1, 0, False)
    for name, *_ in _Entry._fields_:
        known[f"site.{name}"] = layout.Word(getattr(_Entry, name).offset, 1, 8, True)
    known["function.bytes"] = layout.Word(ctypes.sizeof(_Function), 1, 0, False)
    known["function.most"] = layout.Word(4, 1, 0, False)
    for name, kind in _Function._fields_:
        count = ctypes.sizeof(kind) if name in ("name", "file") else 1
        known[f"function.{name}"] = layout.Word(
            getattr(_Function, name).offset, count, ctypes.sizeof(kind) // count, True
        )
    return layout.Layout("hakozuna", "0.1.0", known)


def test_a_process_is_read_as_its_table_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> None:
    table = (_Entry * 3000)()
    words = _Words(4096, ctypes.addressof(table), 7)
    described = _described(words, len(table))
    monkeypatch.setattr(layout, "find", lambda process: [described, described])  # two heaps with one profile
    expected = many(40, lambda chance: chance.choice((0, 1, 64)))
    for site, entry in zip(expected.sites, table, strict=False):
        entry.state, entry.depth = 1, len(site.stack)
        for name in profile.COUNTS:
            setattr(entry, name, getattr(site.figures, name))
        entry.lifetimes[:] = site.figures.lifetimes
        entry.frames[: len(site.stack)] = site.stack
    table[len(expected.sites) + 1].state = 1  # behind the end
    (one,) = profile.of_process(os.getpid())
    assert one.sites == expected.sites
    assert (one.interval, one.dropped, one.pid) == (4096, 7, os.getpid())
    assert one.program == str(Path("/proc/self/exe").readlink())
    assert one.mappings
    assert all(each.start < each.end for each in one.mappings)
    file = tmp_path / "self.heap"
    assert run(os.getpid(), "--save", file)[0] == 0
    assert profile.read(str(file)).sites == expected.sites
    words.interval = 0
    code_, _, err = run(os.getpid())
    assert code_ == 2
    assert err.endswith("keeps no heap profile: start it with HZ_PROFILE_HEAP=1, or set profile_heap by hz ctl\n")


def test_the_functions_of_a_process_are_read_as_their_table_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    table, functions = (_Entry * 10)(), (_Function * 4)()
    words = _Words(4096, ctypes.addressof(table), 0, ctypes.addressof(functions))
    described = _described(words, len(table))
    monkeypatch.setattr(layout, "find", lambda process: [described])
    for number, texts in enumerate(((b"f", b"a.py"), (b"too long", b"t\tab\n.py"))):
        functions[number].state, functions[number].line = 1, 7 + number
        functions[number].name, functions[number].file = texts
    functions[3].state = 1  # behind the end
    (one,) = profile.of_process(os.getpid())
    assert one.functions == {
        profile.INTERPRETED | 1: profile.Function("f", "a.py", 7),
        profile.INTERPRETED | 2: profile.Function("too long", "t?ab?.py", 8),
    }
    assert one.hides_objects == (os.environ.get("PYTHONMALLOC") != "malloc")
    for word, value in (("bytes", 0), ("bytes", 1 << 20), ("most", 1 << 40), ("file", 1 << 20)):
        described = _described(words, len(table))
        described.words[f"function.{word}"] = layout.Word(value, 1, int(word == "file"), word == "file")
        with pytest.raises(UnseenError, match="is damaged"):
            profile._functions(Process(os.getpid()), described)
    words.functions = 1 << 20  # where nothing lies
    described = _described(words, len(table))
    with pytest.raises(UnseenError, match="cannot be read"):
        profile.of_process(os.getpid())


def test_a_damaged_description_is_refused_and_an_old_one_named(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (_Entry * 10)()
    words = _Words(4096, ctypes.addressof(table), 7)
    for name, value in (("bytes", 0), ("bytes", 1 << 20), ("most", 1 << 40), ("frames", 1 << 20)):
        described = _described(words, len(table))
        described.words[f"site.{name}"] = layout.Word(value, 1, 0, False)
        with pytest.raises(UnseenError, match="is damaged"):
            profile._of_heap(Process(os.getpid()), described)
    monkeypatch.setattr(layout, "find", lambda process: [layout.Layout("hz7", "0.0.1", {})])
    with pytest.raises(UnseenError, match=r"its library, hz7 0\.0\.1, keeps no heap profile"):
        profile.of_process(os.getpid())


@pytest.mark.parametrize("line", [line for line in LINES if line != "hz7"])
def test_a_process_and_the_file_that_it_leaves(line: str, hold: Holders, tmp_path: Path) -> None:
    file = tmp_path / "left.heap"
    held = hold(line, HZ_PROFILE_HEAP="4096", HZ_PROFILE_HEAP_FILE=str(file), HZ_BACKGROUND="0")
    said = hold(line, HZ_BACKGROUND="0").stats()[1]["bytes_live"]
    seen = prof.read([str(held.pid)], Names())
    (one,) = seen.profiles
    assert (one.pid, one.line, one.interval, one.dropped) == (held.pid, line, 4096, 0)
    assert one.name == "hz-holder"
    total = seen.sum()
    error = sum(figures_.error_of("live", 4096) ** 2 for _, figures_ in seen.sites) ** 0.5
    assert abs(total.live_bytes - said) < 5 * error + (64 << 10)  # stdio and the loader have some, too
    most = [[frame.function for frame in stack] for stack, figures_ in seen.sites if figures_.samples > 100]
    assert any("hold" in functions and len(functions) > 2 for functions in most), most
    held.end()
    left = profile.read(str(file))
    assert {site.stack for site in one.sites} <= {site.stack for site in left.sites}
    assert left.sum().allocated_bytes >= total.allocated_bytes


def test_a_profile_that_begins_and_pauses_while_the_process_runs(hold: Holders, run: Run, tmp_path: Path) -> None:
    left = tmp_path / "left.heap"
    held = hold("hakozuna", "busy", HZ_CONTROL="1", HZ_PROFILE_HEAP="0", HZ_PROFILE_HEAP_FILE=str(left))
    with pytest.raises(UnseenError, match="set profile_heap first"):
        control.ask(held.pid, "set write_heap_profile")
    assert run(held.pid)[0] == 2
    assert control.ask(held.pid, "set profile_heap 4096") == "4096"
    end = time.monotonic() + 10
    while not (seen := profile.of_process(held.pid)[0].sum()).samples and time.monotonic() < end:
        time.sleep(0.02)
    assert seen.samples > 0
    assert control.ask(held.pid, "set profile_heap 0") == "0"
    assert control.ask(held.pid, "get profile_heap") == "0"
    assert control.ask(held.pid, "set write_heap_profile") == "1"
    written = profile.read(str(left))
    assert written.interval == 4096
    assert written.sum().samples >= seen.samples
    most = max((site.stack for site in written.sites), key=len)
    assert len(most) > 2, "stacks are whole"
    time.sleep(0.3)  # each thread crosses by then, or has ended
    paused = profile.of_process(held.pid)[0].sum().samples
    time.sleep(0.2)
    assert profile.of_process(held.pid)[0].sum().samples == paused
    held.end()
    assert profile.read(str(left)).sum().samples == paused


def test_a_process_that_keeps_none(hold: Holders, run: Run) -> None:
    code_, out, err = run(hold("hakozuna").pid)
    assert (code_, out) == (2, "")
    assert err.endswith("keeps no heap profile: start it with HZ_PROFILE_HEAP=1, or set profile_heap by hz ctl\n")


def test_a_process_that_ends_meanwhile(hold: Holders, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    held = hold("hakozuna", HZ_PROFILE_HEAP="4096", HZ_PROFILE_HEAP_FILE="/dev/null")
    find = layout.find

    def find_and_end(process: Process) -> list[layout.Layout]:
        found = find(process)
        held.end()
        return found

    monkeypatch.setattr(layout, "find", find_and_end)
    code_, _, err = run(held.pid)
    assert code_ == 2
    assert "has ended" in err
    assert len(err.splitlines()) == 1


def test_the_launcher_and_a_process_without_us() -> None:
    answer = hz("prof", "--top", "3", str(os.getpid()))
    assert answer.returncode == 4
    assert "is not served by Hakozuna" in answer.stderr
    assert "process 3\n" not in answer.stderr
    assert "LD_PRELOAD did not name us" in answer.stderr
