# SPDX-License-Identifier: Apache-2.0
"""What the parsers of `hz` share. python -m hakozuna_lab.arguments COMMAND WORD... checks the words of a lab's command
with python's library alone: `hz` asks before it installs or builds anything. With --lanes first it checks the lanes
among them, too, for which the program `lane` has to be built. Exit: 0; 2 after what is wrong."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from hakozuna_observe.process import shortened

MOST_HOURS = 1000


class Parser(argparse.ArgumentParser):
    """Ends as every error of `hz` does, and wants options in full."""

    def __init__(self, **options: object) -> None:
        super().__init__(**{"allow_abbrev": False, **options})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        misuse(self.prog.removeprefix("hz "), message)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        given, rest = self.parse_known_args(args, namespace)
        # A command's parser hands on what it does not know, and words that stand behind options.
        words_of = vars(given).pop("words_of", None)
        behind = rest.index("--") if "--" in rest else len(rest)
        for place, word in enumerate(rest):
            if words_of is None or (word.startswith("-") and place < behind):
                misuse(given.command, f"'{shortened(word)}' is not understood")
            if place != behind:
                getattr(given, words_of).append(word)
        return given

    def add_words(self, name: str, metavar: str, help: str = "") -> None:  # noqa: A002  # as argparse has it
        """Any number of them, before options and behind."""
        self.add_argument(name, nargs="*", metavar=metavar, help=help)
        self.set_defaults(words_of=name)


def misuse(command: str, what: str) -> NoReturn:
    print(f"hz: error: {command}: {what}; see hz {command} --help", file=sys.stderr)
    sys.exit(2)


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def number(least: int, most: int = 10**9) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{shortened(text)}' is no number from {least} to {most}")
        return int(text)

    return parse


def thread_counts(text: str) -> tuple[int, ...]:
    return tuple(number(1, 100_000)(word) for word in words(text))


def duration(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0
    if not 0 < hours <= MOST_HOURS:
        raise argparse.ArgumentTypeError(f"'{shortened(text)}' is no number of hours, above 0 and up to {MOST_HOURS}")
    return hours


def writable(text: str) -> Path:
    """A file that can be written when all is done, with folders that are made for it. Nothing is made yet."""
    path = Path(text)
    try:
        there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
        can_be = os.access(there, os.W_OK) and there.is_dir() == (there != path.absolute())
    except OSError:  # the name is too long
        can_be = False
    if not can_be:
        raise argparse.ArgumentTypeError(f"{shortened(text)} cannot be written")
    return path


def main() -> None:
    from hakozuna_lab import UsageError
    from hakozuna_lab.cli import check, check_lanes, parser

    with_lanes = sys.argv[1:2] == ["--lanes"]
    given = parser().parse_args(sys.argv[2:] if with_lanes else sys.argv[1:])
    try:
        check(given)
        if with_lanes:
            check_lanes(given)
    except UsageError as error:
        misuse(given.command, str(error))


if __name__ == "__main__":
    main()
