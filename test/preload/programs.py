# SPDX-License-Identifier: Apache-2.0
"""The table of real programs: each program's work with and without us, its result, its time and its peak memory.

Called by `hz programs` with the environment HZ_TEST_LINE and HZ_TEST_COMMIT. The work is that of the tests: this calls
their scripts, which measure themselves when asked (lib.sh), in pairs of turns with the order turned round each time.
Costs the programs' own time, some two minutes for a pair of all of them.
"""
import argparse
import hashlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TURNS = ("plain", "served")
HEAD = ("program", "version", "result", "time without, s", "with, s", "ratio", "peak without, MiB", "with, MiB",
        "ratio")


def all_programs():
    return sorted(script.stem for script in HERE.glob("*.sh") if script.stem != "lib")


class Row:
    """What was seen of one program: every measured run per turn, and the first complaint."""

    def __init__(self, program):
        self.program = program
        self.version = "-"
        self.result = "same"
        self.runs = {turn: [] for turn in TURNS}

    def pair(self, library, number, log):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report"
            turns = TURNS if number % 2 == 0 else TURNS[::-1]
            done = subprocess.run(
                ["sh", str(HERE / f"{self.program}.sh"), library], text=True, check=False, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                env={**os.environ, "HZ_TEST_REPORT": str(report), "HZ_TEST_TURNS": " ".join(turns)})
            told = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
        if done.returncode != 0:
            last = (done.stdout.strip().splitlines() or [""])[-1]
            self.result = "absent" if done.returncode == 77 else "FAILED"
            log.write(f"--- {self.program}: {self.result}\n{done.stdout}\n")
            print(f"hz: {self.program}: {last}", file=sys.stderr)
        self.take(told, complete=done.returncode == 0)

    def take(self, told, complete):
        """A run's time is the sum of what its script did, its peak the highest of them."""
        seconds = dict.fromkeys(TURNS, 0.0)
        peaks = dict.fromkeys(TURNS, 0)
        for words in (line.split() for line in told):
            if words[0] == "version":
                self.version = " ".join(words[1:])
            else:
                seconds[words[0]] += float(words[1])
                peaks[words[0]] = max(peaks[words[0]], int(words[2]))
        if complete:
            for turn in TURNS:
                self.runs[turn].append((seconds[turn], peaks[turn] / 1024))

    def cells(self):
        words = [self.program, self.version, self.result]
        for what, digits in ((0, 2), (1, 1)):
            plain, served = ([run[what] for run in self.runs[turn]] for turn in TURNS)
            if not plain or min(plain + served) <= 0:
                words += ["-", "-", "-"]
                continue
            ratio = statistics.median(b / a for a, b in zip(plain, served))
            words += [f"{statistics.median(runs):.{digits}f}" for runs in (plain, served)] + [f"{ratio:.2f}"]
        return words


def load():
    return " ".join(f"{x:.2f}" for x in os.getloadavg())


def conditions(library, line, pairs, before):
    cpu = next((row.split(":")[1].strip() for row in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                if row.startswith("model name")), platform.machine())
    system = dict(row.split("=", 1) for row in Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
                  if "=" in row)
    digest = hashlib.sha256(Path(library).read_bytes()).hexdigest()
    return [
        f"- line {line}: {Path(library).name} sha256 {digest}",
        f"- commit: {os.environ.get('HZ_TEST_COMMIT') or 'unknown'}",
        f"- CPU: {cpu}, {len(os.sched_getaffinity(0))} usable",
        f"- load: {before} before, {load()} after",
        f"- system: {system.get('PRETTY_NAME', '').strip(chr(34))}, kernel {platform.release()}",
        f"- {pairs} {'pair' if pairs == 1 else 'pairs'} of runs, order turned round each time; medians; ratio: median "
        "of the pairs' ratios, with / without, below 1 is better",
        "- time: of the program itself; of a server: what its clients took",
        "- peak: the largest process (ru_maxrss); of a server: its processes when the work was done (VmHWM, added up)",
        "- result: same means that everything that the program wrote was compared and was the same",
    ]


def markdown(rows, about, line):
    text = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# Real programs with and without {line}", "",
            "Made by `hz programs`; losing rows are printed like winning ones.", "", *about, "",
            f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    return "\n".join(text + [f"| {' | '.join(row.cells())} |" for row in rows]) + "\n"


def plain_text(rows):
    table = [HEAD] + [row.cells() for row in rows]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(cells, widths))).rstrip() for cells in table)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library")
    parser.add_argument("--log")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--markdown")
    parser.add_argument("programs", nargs="*")
    wanted = parser.parse_args()
    unknown = sorted(set(wanted.programs) - set(all_programs()))
    if unknown:
        print(f"hz: error: programs: no such program here: {' '.join(unknown)}; the programs are: {' '.join(all_programs())}",
              file=sys.stderr)
        return 2
    if wanted.library is None:  # asked for the names alone
        return 0

    rows = []
    before = load()
    with open(wanted.log, "a", encoding="utf-8") as log:
        for program in wanted.programs or all_programs():
            row = Row(program)
            for number in range(wanted.pairs):
                print(f"hz: {program}, pair {number + 1} of {wanted.pairs}…", file=sys.stderr)
                row.pair(wanted.library, number, log)
                if row.result != "same":
                    break
            rows.append(row)
    line = os.environ["HZ_TEST_LINE"]
    print(plain_text(rows))
    if wanted.markdown:
        about = conditions(wanted.library, line, wanted.pairs, before)
        Path(wanted.markdown).absolute().parent.mkdir(parents=True, exist_ok=True)
        Path(wanted.markdown).write_text(markdown(rows, about, line), encoding="utf-8")
    bad = [row.program for row in rows if row.result != "same"]
    if bad:
        print(f"hz: error: programs: not the same: {' '.join(bad)} (all of it in {wanted.log})", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
