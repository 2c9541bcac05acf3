# SPDX-License-Identifier: Apache-2.0
"""Contenders: what a program is started with, and the proof of which allocator served it."""

from pathlib import Path

import pytest
from hakozuna_lab import LabError
from hakozuna_lab.contender import Contender, parse_contender, with_settings


def test_settings_of_the_shell_do_not_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HZ_RETAIN", "MALLOC_CONF", "MIMALLOC_ALLOW_THP", "LD_PRELOAD", "GLIBC_TUNABLES"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("HOME", "/kept")
    env = Contender("hz3", None, {"HZ_RETAIN": "200"}).environment()
    assert "leaked" not in env.values()
    assert (env["HOME"], env["HZ_RETAIN"]) == ("/kept", "200")


def test_the_library_is_preloaded(tmp_path: Path) -> None:
    assert Contender("x", tmp_path / "x.so").environment()["LD_PRELOAD"] == str(tmp_path / "x.so")
    assert "LD_PRELOAD" not in Contender("glibc", None).environment()


def test_a_record_of_another_allocator_is_an_error(tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    Contender("x", library).check({"allocator_file": str(library)})
    Contender("glibc", None).check({"allocator_file": "/usr/lib/libc.so.6"})
    with pytest.raises(LabError, match=r"x: asked for .*libx.so, but malloc came from /usr/lib/"):
        Contender("x", library).check({"allocator_file": "/usr/lib/libc.so.6"})
    with pytest.raises(LabError, match="asked for the C library"):
        Contender("glibc", None).check({"allocator_file": str(library)})


def test_a_link_to_the_library_is_the_library(tmp_path: Path) -> None:
    (tmp_path / "libx.so.2").write_bytes(b"")
    (tmp_path / "libx.so").symlink_to("libx.so.2")
    Contender("x", tmp_path / "libx.so").check({"allocator_file": str(tmp_path / "libx.so.2")})


def test_parse(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(b"")
    assert parse_contender(f"x={tmp_path}/libx.so") == Contender("x", tmp_path / "libx.so")
    for text in ("x", "x=", "x=/no/such.so", f"={tmp_path}/libx.so"):
        with pytest.raises(LabError, match="expected NAME=LIBRARY"):
            parse_contender(text)
    (tmp_path / "lib x.so").write_bytes(b"")
    with pytest.raises(LabError, match="cannot name a path with a space or a colon"):
        parse_contender(f"x={tmp_path}/lib x.so")


def test_settings_and_doubles() -> None:
    a, b = Contender("a", None, {"K": "1"}), Contender("b", None)
    assert with_settings([a, b], ["a=L=x=y"]) == [Contender("a", None, {"K": "1", "L": "x=y"}), b]
    for text in ("c=K=V", "a=K", "a"):
        with pytest.raises(LabError, match="expected CONTENDER=KEY=VALUE"):
            with_settings([a, b], [text])
    with pytest.raises(LabError, match="two contenders have the name a"):
        with_settings([a, a], [])
