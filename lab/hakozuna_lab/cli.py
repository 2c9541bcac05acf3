# SPDX-License-Identifier: Apache-2.0
"""The command line of the lab. It only parses; each command's work is in the module that it imports when it is called,
so that a command costs the start of its own modules alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from hakozuna_lab import LabError

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def bench() -> None:
    """Measures lines against peers, lane by lane."""
    from hakozuna_lab import bench as command  # type: ignore[attr-defined, unused-ignore]

    command.main()


@app.command()
def ab() -> None:
    """Two lines, or two values of an option, until the answer is clear."""
    from hakozuna_lab import ab as command  # type: ignore[attr-defined, unused-ignore]

    command.main()


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def measure(
    program: Annotated[list[str], typer.Argument(help="the program and its arguments")],
    line: Annotated[str, typer.Option(help="our line")],
    pairs: Annotated[int, typer.Option(min=1, help="runs with us and without us each")] = 5,
) -> None:
    """A program of yours with and without us, in turn: time and memory."""
    from hakozuna_lab import measure as command  # type: ignore[attr-defined, unused-ignore]

    command.main(program, line, pairs)


@app.command()
def peers(names: Annotated[list[str] | None, typer.Argument(help="peers to get or build (all)")] = None) -> None:
    """Gets and builds the allocators to compare with, and lists them."""
    from hakozuna_lab import peers as command  # type: ignore[attr-defined, unused-ignore]

    command.main(names or ["all"])


@app.command()
def report(
    files: Annotated[list[Path] | None, typer.Argument(help="results (the latest)")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the page and the pictures")] = None,
) -> None:
    """Makes one HTML page, and pictures, of stored results."""
    from hakozuna_lab import report as command  # type: ignore[attr-defined, unused-ignore]

    command.main(files or [], out)


def main() -> None:
    try:
        app()
    except LabError as error:
        print(f"hz: {error}", file=sys.stderr)
        sys.exit(1)
