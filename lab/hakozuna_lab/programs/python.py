# SPDX-License-Identifier: Apache-2.0
"""python3 with its own small-object allocator switched off: threads that churn dictionaries, strings and lists, objects
freed by another thread than made them, json, byte arrays that grow, child processes. The script is that of
test/preload/python3.sh, which runs it once and compares what it writes; here one process runs it again and again."""

from hakozuna_lab.programs.program import SHARED, Job, Program, Record, find, first_line, measure_to_end

ROUNDS = 12
AGAIN = "import runpy, sys\nfor _ in range(int(sys.argv[2])): runpy.run_path(sys.argv[1])"
ENV = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def work(job: Job) -> Record:
    rounds = job.count(ROUNDS)
    command = [find("python3"), "-c", AGAIN, str(SHARED / "churn.py"), str(rounds)]
    return measure_to_end(job, command, rounds, env=ENV)


PYTHON = Program(
    "python3", ("churn",), ("python3", "time"), lambda: first_line(find("python3"), "--version").split()[1], work
)
