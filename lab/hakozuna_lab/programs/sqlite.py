# SPDX-License-Identifier: Apache-2.0
"""sqlite3 fills a table, builds two indexes, sorts, joins, changes and checks, all on disk. The statements are those of
test/preload/sqlite3.sh, which compares the files that come out; here there are ten times as many rows. An op is one
row."""

from hakozuna_lab.programs.program import SHARED, Job, Program, Record, find, first_line, measure_to_end

ROWS = 600_000


def work(job: Job) -> Record:
    rows = job.count(ROWS)
    statements = job.workdir / "churn.sql"
    text = (SHARED / "churn.sql").read_text(encoding="utf-8")
    statements.write_text(f".parameter set $rows {rows}\n{text}", encoding="utf-8")
    with statements.open("rb") as stdin:
        return measure_to_end(job, [find("sqlite3"), "-batch", "-bail", "churn.db"], rows, stdin=stdin)


SQLITE = Program(
    "sqlite3", ("index",), ("sqlite3", "time"), lambda: first_line(find("sqlite3"), "--version").split()[0], work
)
