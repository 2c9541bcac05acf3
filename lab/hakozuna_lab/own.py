# SPDX-License-Identifier: Apache-2.0
"""`hz run --measure` and `hz tune`: a program of the user's own. hz calls this with words that it has checked, also an
installed hz: it has the modules that are imported here, and no package but numpy (cmake/installation.cmake)."""

import argparse
import sys
from pathlib import Path

from hakozuna_lab import LabError, measure, tune
from hakozuna_lab.contender import Contender


def main() -> int:
    parser = argparse.ArgumentParser(prog="hz", add_help=False)
    parser.add_argument("command", choices=("measure", "tune"))
    parser.add_argument("--line", required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True, help="what the program writes goes there")
    parser.add_argument("--show", action="store_true", help="or is passed on")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--out", type=Path)
    divider = sys.argv.index("--")
    given, words = parser.parse_args(sys.argv[1:divider]), sys.argv[divider + 1 :]
    line = Contender(given.line, given.library)
    try:
        if given.command == "tune":
            return tune.main(words, line, given.pairs or 3, given.log, given.show, given.out)
        return measure.main(words, line, given.pairs or 5, given.log, given.show)
    except (LabError, OSError) as error:
        print(f"hz: error: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
