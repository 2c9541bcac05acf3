# SPDX-License-Identifier: Apache-2.0
"""python -m hakozuna_lab.arguments COMMAND WORD...: reads the words as the command will, and does nothing else. `hz`
asks before it builds anything for the command. Exit: 0; 2 after what is wrong with them."""

import typer

from hakozuna_lab.cli import app


def main() -> None:
    commands = typer.main.get_group(app)
    for command in commands.commands.values():
        command.callback = lambda **_: None
    commands(prog_name="hz")


if __name__ == "__main__":
    main()
