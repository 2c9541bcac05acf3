# SPDX-License-Identifier: Apache-2.0
#
# depth.py --explorer PROGRAM --page FILE [--long]: runs the explorer, and holds the page's table of scenarios to what it
# says: each scenario has a row, and of whom the page says that all orders are run, all are. A row's second and third cells
# are what is run every day and by `hz endure` (--long); they begin with "all" or with "some". Called by CTest in the
# explorer's place; costs no more than the explorer.
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"^\| `([a-z_.]+)` \| (all|some)\b[^|]*\| (all|some)\b")
RUN = re.compile(r"^(\S+) +\d+ executions, (all|cut off) up to")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--explorer", required=True)
    parser.add_argument("--page", required=True, type=Path)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    page = options.page.read_text(encoding="utf-8").splitlines()
    said = {row[1]: row[3 if options.long else 2] for row in map(ROW.match, page) if row}
    run = subprocess.Popen([options.explorer], stdout=subprocess.PIPE, text=True)
    ran = {}
    for line in run.stdout:
        print(line, end="", flush=True)
        if known := RUN.match(line):
            ran[known[1]] = known[2]
    if run.wait() != 0:
        sys.exit(run.returncode)
    wrong = [f"{name}: {options.page.name} has no row" for name in ran if name not in said]
    wrong += [f"{name}: {options.page.name} has a row, and there is no such scenario" for name in said if name not in ran]
    wrong += [f"{name}: {options.page.name} says that all orders are run" for name, of in said.items()
              if of == "all" and ran.get(name) == "cut off"]
    print(f"{len(ran)} scenarios, {len(said)} rows")
    if wrong or not ran:
        sys.exit("\n".join(wrong) or "the explorer says nothing")


if __name__ == "__main__":
    main()
