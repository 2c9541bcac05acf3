# SPDX-License-Identifier: Apache-2.0
#
# sqlite3: create, index, query, change and check a database on disk. The files must be the same to the byte.
. "$(dirname "$0")/lib.sh"
need sqlite3
version "$(sqlite3 --version | cut -d' ' -f1)"
run_sql() {
  run sqlite3 -batch "$work/$turn.db" <"$sources/churn.sql"
  cksum <"$work/$turn.db"
}
both sqlite3 run_sql
grep -qx ok "$work/sqlite3.served.out" || fail "the integrity check did not say ok"
