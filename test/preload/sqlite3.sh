# SPDX-License-Identifier: Apache-2.0
#
# sqlite3: create, index, query, change and check a database on disk. The files must be the same to the byte.
. "$(dirname "$0")/lib.sh"
need sqlite3
run_sql() { (cd "$work" && rm -f test.db && sqlite3 -batch test.db <"$sources/churn.sql"); }
plainly sqlite3 run_sql
mv "$work/test.db" "$work/plain.db"
served sqlite3 run_sql
[ -s "$work/sqlite3.plain.out" ] || fail "sqlite3 wrote nothing"
same "$work/sqlite3.plain.out" "$work/sqlite3.served.out"
same "$work/sqlite3.plain.err" "$work/sqlite3.served.err"
same "$work/plain.db" "$work/test.db"
grep -qx ok "$work/sqlite3.served.out" || fail "the integrity check did not say ok"
