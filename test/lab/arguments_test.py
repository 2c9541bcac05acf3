# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the words of a command is said in one line with exit code 2, before anything is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hakozuna_lab.paths import ROOT

WRONG = [
    ["bench", "--nonsense"],
    ["bench", "--quic"],
    ["bench", "--lines", "nobody"],
    ["bench", "--peers", "nobody"],
    ["bench", "--peers", "jemalloc+nothing"],
    ["bench", "--peer", "x=/no/such.so"],
    ["bench", "--threads", "2,x"],
    ["bench", "--runs", "9" * 5000],
    ["bench", "--resume", "/no/such.jsonl"],
    ["bench", "--resume", "--quick"],
    ["bench", "--resume", "--seed", "0"],
    ["bench", "a", "-b"],
    ["bench", "--count", "--runs", "3"],
    ["bench", "--out", "/dev/null/x.jsonl"],
    ["bench", "--out", "/" + "x" * 5000],
    ["bench", "--out", "/tmp"],
    ["ab"],
    ["ab", "mine"],
    ["ab", "mine", "nobody"],
    ["ab", "--set", "nothing=1"],
    ["ab", "--set", "retain"],
    ["ab", "--mode", "both", "mine", "other"],
    ["scale", "--calls", "0"],
    ["peers", "--build", "nobody"],
    ["report", "/no/such.jsonl"],
]


def asked(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """By the system's python, which has nothing but its library."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}/lab:{ROOT}/observe", "HZ_LAB_LINES": "mine other"}
    command = [str(Path(sys.base_prefix) / "bin/python3"), "-B", "-S", "-m", f"hakozuna_lab.{module}", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words)[:40])
def test_what_is_wrong(words: list[str]) -> None:
    done = asked("arguments", *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"hz: error: {words[0]}: ")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 500


def test_what_is_right() -> None:
    for words in (
        ["bench"],
        [
            "bench",
            "--lines",
            "mine,other",
            "--peers",
            "jemalloc+cpu,newest+",
            "--threads",
            "2,16",
            "--out",
            "new/x.jsonl",
        ],
        ["bench", "main_r50", "--quick", "guard"],
        ["bench", "main_r50", "--quick", "--", "guard"],
        ["ab", "mine", "--seed", "1", "--", "other"],
        ["ab", "mine", "other", "main_r50"],
        ["ab", "--set", "retain=110", "--set", "THP=never"],
        ["peers", "hardened_malloc", "--build"],
        ["report", str(ROOT / "README.md")],
        ["scale", "--hottest", "0"],
    ):
        done = asked("arguments", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words


def test_help_needs_no_package() -> None:
    for command in ("bench", "ab", "scale", "peers", "report"):
        done = asked("arguments", command, "-h")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"usage: hz {command} ")


@pytest.mark.parametrize(
    "words",
    [
        ["test", "--nonsense"],
        ["test", "word"],
        ["test", "--everything"],
        ["test", "--list", "-R", "x"],
        ["coverage", "--nonsense"],
        ["programs", "--markdown", "/dev/null/x.md"],
        ["programs", "--pairs", "0"],
        ["suites", "nonsense"],
        ["endure", "--hours", "1", "nonsense"],
        ["endure", "redis"],
    ],
    ids=lambda words: " ".join(words),
)
def test_what_is_wrong_for_the_checks(words: list[str]) -> None:
    done = asked("checks", *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"hz: error: {words[0]}: ")
    assert done.stderr.count("\n") == 1
