# SPDX-License-Identifier: Apache-2.0
#
# postgres: a new cluster, pgbench's tables and 4 clients of its transactions, their invariants, then queries that sort,
# hash, join, aggregate and index in one session. Every process of the cluster is served. It refuses root, so root
# runs it as another user.
. "$(dirname "$0")/lib.sh"
bin=$(pg_config --bindir 2>/dev/null) && [ -x "$bin/initdb" ] ||
  bin=$(find /usr/lib/postgresql/*/bin -name initdb -exec dirname {} \; 2>/dev/null | sort -V | tail -n 1)
PATH=${bin:+$bin:}$PATH
need initdb postgres pgbench psql
version "$(postgres --version | awk '{ print $3 }')"
as_user=
if [ "$(id -u)" = 0 ]; then
  if id postgres >/dev/null 2>&1; then owner=postgres; else owner=nobody; fi
  as_user="setpriv --reuid=$owner --regid=$(id -gn "$owner") --clear-groups"
  chown "$owner" "$work"
  # Where that user may read it.
  cp "$library" "$work/"
  library=$work/${library##*/}
  need setpriv
fi
export PGHOST="$work" PGUSER=tester PGDATABASE=postgres
unset PGPORT PGDATA PGOPTIONS

answers() { pg_isready -q; }

benchmark() {
  pgbench -n -c 4 -j 2 -t 400 >"$work/pgbench" 2>&1 || { cat "$work/pgbench" >&2; return 1; }
  pgbench -n -S -M prepared -c 4 -j 2 -t 2000 >>"$work/pgbench" 2>&1
  psql -X -q -f "$sources/churn.psql" >"$work/queries"
}

serve_postgres() {
  data=$work/$turn
  # shellcheck disable=SC2086  # a list of words
  run $as_user "$bin/initdb" -D "$data" -U tester -A trust -E UTF8 --locale=C -N >"$work/initdb" 2>&1 ||
    { cat "$work/initdb" >&2; fail initdb; }
  # shellcheck disable=SC2086
  serve $as_user "$bin/postgres" -D "$data" -k "$work" -c listen_addresses= -c fsync=off -c shared_buffers=32MB \
    -c max_connections=20 -c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 \
    -c autovacuum=off -c log_min_messages=warning
  wait_until answers
  pgbench -q -i -s 2 >/dev/null 2>&1
  timed benchmark
  grep 'actually processed' "$work/pgbench"
  cat "$work/queries"
  psql -X -A -t -c "SELECT count(*), (SELECT sum(abalance) FROM pgbench_accounts) = sum(delta),
    (SELECT sum(bbalance) FROM pgbench_branches) = sum(delta) FROM pgbench_history"
  pg_dump -t item | grep -v -e '^[\]' | sort | cksum
  # The session that did the queries told what it needed.
  if [ -n "$report" ]; then awk '{ print 0, $2 }' "$work/peak" >>"$work/$turn.times"; fi
  end_server INT
}
both postgres serve_postgres
