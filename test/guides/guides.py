# SPDX-License-Identifier: Apache-2.0
"""guides.py [--write] PAGE...: runs the commands of a guide (doc/guides) as a reader would, and compares what they
write with what the page shows. Called by CTest for each page; with --write it puts what it saw into the page.

A block ```console has commands behind `$ `, and below each what it writes. All commands of a page run in one bash, in a
folder of their own, with `hz` in the path. A block with title="NAME" is written to that file first. `...` stands for
lines that the page leaves out. Words have to be the same. A number may differ; an amount of memory by half and 3 MiB.
<!-- needs: A B --> names programs without which the page is skipped, <!-- run: COMMAND --> is a command that is not
shown."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{os.environ['PATH']}:/usr/sbin"
SECONDS = 240
SKIPPED = 77
LEFT_OUT = "..."
MARK = "\x01"  # before the output of a command
POWERS = {"B": 0, "k": 10, "K": 10, "M": 20, "G": 30}  # of units, by their first letter
SLACK = 3 << 20  # bytes
NUMBER = re.compile(r"0x[0-9a-f]+|\d[\d,]*(?:\.\d+)?(?: ?(?:B|kB|[KMG]iB|[KMG])\b)?")
BARS = re.compile(r"(?<=\|)[▁▂▃▄▅▆▇█ ]*(?=\|)")  # of a histogram
BLOCK = re.compile(r"^```(\w+)(.*)\n((?:.*\n)*?)```$|^<!-- (needs|run): (.*) -->$", re.MULTILINE)


@dataclass
class Command:
    text: str
    shown: list[str]
    hidden: bool = False


@dataclass
class Page:
    needs: list[str]
    files: dict[str, str]
    commands: list[Command]


def read(text: str) -> Page:
    page = Page([], {}, [])
    for language, info, body, kind, words in BLOCK.findall(text):
        title = re.search(r'title="([^"]+)"', info)
        if kind == "needs":
            page.needs += words.split()
        elif kind == "run":
            page.commands.append(Command(words, [], hidden=True))
        elif title:
            page.files[title[1]] = body
        elif language == "console":
            page.commands += commands_of(body)
    return page


def commands_of(body: str) -> list[Command]:
    """A command goes on where its line ends in a backslash."""
    found: list[Command] = []
    goes_on = False
    for line in body.splitlines():
        if goes_on:
            found[-1].text += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(line[2:], []))
        else:
            found[-1].shown.append(line)
        goes_on = line.endswith("\\") and (goes_on or line.startswith("$ "))
    return found


def script_of(commands: list[Command]) -> str:
    lines = ["exec 2>&1"]
    for command in commands:
        lines += [f"printf '\\n{MARK}\\n'", command.text]
    return "\n".join([*lines, f"printf '\\n{MARK}\\n'", ""])


def run(page: Page) -> list[list[str]]:
    """What each command wrote, by lines."""
    with tempfile.TemporaryDirectory(prefix="hz-guide-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)  # services read there as other users
        for file, text in page.files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        tools = folder / "bin"
        tools.mkdir()
        (tools / "hz").symlink_to(ROOT / "hz")
        build = os.environ["HZ_BUILD_DIR"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HZ_")}
        environment |= {"PATH": f"{tools}:{PATH}", "LC_ALL": "C.UTF-8", "HZ_BUILD_DIR": build, "LD_LIBRARY_PATH": build}
        output = folder / "output"
        with output.open("wb") as sink:
            bash = subprocess.Popen(["bash", "-c", script_of(page.commands)], cwd=folder, env=environment, stdout=sink,
                                    stderr=sink, stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
            try:
                bash.wait(SECONDS)
            finally:
                end_all_in(folder)
                bash.wait()
        said = output.read_text(encoding="utf-8", errors="replace").replace(name, ".")
    parts = said.split(f"\n{MARK}\n")[1:-1]
    return [part.splitlines() for part in parts]


def end_all_in(folder: Path) -> None:
    """Processes that the page started and that work in its folder, also those of other sessions."""
    for _ in range(3):  # one that ends may have made another one
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(folder):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


def skeleton(line: str) -> str:
    return re.sub(r"\s+", " ", BARS.sub("", NUMBER.sub("#", line))).strip()


def amounts(line: str) -> list[float]:
    """Bytes of the amounts of memory in it."""
    found = []
    for text in NUMBER.findall(line):
        amount = re.fullmatch(r"([\d,.]+) ?([KMGkiB]+)", text)
        if amount is not None:
            found.append(float(amount[1].replace(",", "")) * 2.0 ** POWERS[amount[2][0]])
    return found


def agree(shown: str, seen: str) -> bool:
    if skeleton(shown) != skeleton(seen):
        return False
    return all(abs(a - b) <= max(a, b) / 2 + SLACK for a, b in zip(amounts(shown), amounts(seen), strict=True))


def matched(shown: list[str], seen: list[str]) -> list[str] | None:
    """The lines to show: those of `seen` in the places of `shown`; None if they do not agree."""
    if not shown:
        return None if seen else []
    if shown[0] == LEFT_OUT:
        for skipped in range(len(seen) + 1):
            rest = matched(shown[1:], seen[skipped:])
            if rest is not None:
                return [LEFT_OUT, *rest]
        return None
    if not seen or not agree(shown[0], seen[0]):
        return None
    rest = matched(shown[1:], seen[1:])
    return None if rest is None else [seen[0], *rest]


def differences(page: Page, seen: list[list[str]]) -> list[str]:
    if len(seen) != len(page.commands):
        return [f"of {len(page.commands)} commands {len(seen)} ended; the last one wrote: {seen[-1:]}"]
    found = []
    for command, lines in zip(page.commands, seen, strict=True):
        if not command.hidden and matched(command.shown, lines) is None:
            found.append(f"$ {command.text}\n  shown:\n{indented(command.shown)}\n  seen:\n{indented(lines)}")
    return found


def indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def rewritten(text: str, page: Page, seen: list[list[str]]) -> str:
    """The page with what was seen. Where a command wrote something else than the page shows, all of it."""
    left = iter([(command, lines) for command, lines in zip(page.commands, seen, strict=True) if not command.hidden])

    def block(match: re.Match[str]) -> str:
        language, info, body = match[1], match[2] or "", match[3]
        if language != "console" or "title=" in info:
            return match[0]
        new = []
        for _ in commands_of(body):
            command, lines = next(left)
            shown = matched(command.shown, lines)
            new += [f"$ {command.text}", *(lines if shown is None else shown)]
        return "\n".join([f"```console{info}", *new, "```"])

    return BLOCK.sub(block, text)


def main(words: list[str]) -> int:
    write = words[:1] == ["--write"]
    for name in words[1:] if write else words:
        path = Path(name)
        text = path.read_text(encoding="utf-8")
        page = read(text)
        missing = [program for program in page.needs if shutil.which(program, path=PATH) is None]
        if missing:
            print(f"{path.name}: skipped, not installed: {' '.join(missing)}")
            return SKIPPED
        seen = run(page)
        if write:
            path.write_text(rewritten(text, page, seen), encoding="utf-8")
        elif found := differences(page, seen):
            print(path.name, *found, sep="\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
