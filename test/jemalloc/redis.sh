# SPDX-License-Identifier: Apache-2.0
#
# redis-server as Debian builds it, linked with jemalloc's library, on jemalloc and on libhakozuna-je.so: what it asks of its
# allocator (INFO memory, MEMORY PURGE, DOCTOR and MALLOC-STATS, jemalloc-bg-thread, active defragmentation) is answered
# alike, what INFO says is what our statistics say, and a purge gives memory back. Called as `sh redis.sh LIBRARY`; takes some
# four seconds.
. "$(dirname "$0")/../preload/lib.sh"
need redis-server redis-benchmark redis-cli awk
ldd "$(command -v redis-server)" | grep -q libjemalloc || absent "a redis-server that is linked with libjemalloc"
socket=$work/redis.sock

cli() { redis-cli -s "$socket" "$@"; }
answers() { [ "$(cli ping)" = PONG ]; }
info() { cli info memory | tr -d '\r' | awk -F: -v name="$1" '$1 == name { print $2 }'; }

rss() { awk '/^RssAnon:/ { print $2 * 1024 }' "/proc/$server/status"; }

mebi=1048576

between() { # LOW VALUE HIGH
  [ -n "$2" ] && [ "$1" -le "$2" ] && [ "$2" -le "$3" ]
}
# expect WHAT LOW VALUE HIGH
expect() {
  between "$2" "$3" "$4" || fail "$turn: $1 is ${3:-nothing}, not from $2 to $4"
}

# 60,000 keys with 500 bytes each, in one order.
fill() {
  awk 'BEGIN {
    value = sprintf("%500s", "x")
    gsub(" ", "x", value)
    for (i = 0; i < 60000; ++i) printf "SET key:%d %s\r\n", i, value
  }' | cli --pipe >"$work/pipe"
  grep -q 'errors: 0, replies: 60000' "$work/pipe" || { cat "$work/pipe" >&2; fail "writes were refused"; }
}

# INFO shows of the allocator what a timer noted, every 100 ms; so it may be a while until both agree.
figures_agree() {
  cli info memory | tr -d '\r' >"$work/info"
  figure() { awk -F: -v name="$1" '$1 == name { print $2 }' "$work/info"; }
  used=$(figure used_memory) allocated=$(figure allocator_allocated) active=$(figure allocator_active)
  resident=$(figure allocator_resident)
  between $((used - mebi)) "$allocated" $((used + 4 * mebi)) &&
    between "$allocated" "$active" $((allocated + allocated / 4 + 8 * mebi)) &&
    between "$active" "$resident" $((active + 24 * mebi))
}
figures() {
  tries=0
  until figures_agree; do
    tries=$((tries + 1))
    [ "$tries" -le 100 ] ||
      fail "$turn: INFO says used_memory $used, allocator_allocated $allocated, _active $active, _resident $resident"
    sleep 0.1
  done
}

check_answers() {
  info mem_allocator
  cli memory purge
  cli memory doctor | grep -c .
  cli memory malloc-stats >"$work/malloc-stats"
  grep -o '^Allocated: ' "$work/malloc-stats"
  # Its own jemalloc, which moves blocks, is not in Debian's.
  cli config set activedefrag yes
  # Ours cannot be told, and redis does not ask whether it was.
  cli config set jemalloc-bg-thread no
  cli config set jemalloc-bg-thread yes
}

check_redis() {
  fill
  figures
  expect "used_memory" $((30 * mebi)) "$used" $((60 * mebi))
  full=$(rss)
  check_answers
  # A thread of redis' own frees all. What stays for the next blocks goes when it is asked for.
  cli flushall async
  wait_until freed
  kept=$(rss)
  cli memory purge
  if [ "$turn" = served ]; then
    expect "RSS after FLUSHALL ASYNC" 0 "$kept" $((full / 3))
    expect "RSS after MEMORY PURGE" 0 "$(rss)" $((full / 4))
  else
    expect "RSS after FLUSHALL ASYNC" $((full / 4)) "$kept" $((full + 8 * mebi))
    expect "RSS after MEMORY PURGE" 0 "$(rss)" $((kept / 2))
  fi
  figures
  expect "used_memory after MEMORY PURGE" 0 "$used" $((4 * mebi))
  # FLUSHALL itself purges, too.
  fill
  cli flushall
  expect "RSS after FLUSHALL" 0 "$(rss)" $((full / 3))
  fill
  figures
}

freed() { [ "$(info lazyfree_pending_objects)" = 0 ]; }

serve_redis() {
  # Our own figures, at the end, to be compared with those of INFO. And no thread that gives back unasked.
  if [ "$turn" = served ]; then export HZ_STATS=1 HZ_STATS_FILE="$work/at-end" HZ_BACKGROUND=0 HZ_PRESET=fast; fi
  serve redis-server --port 0 --unixsocket "$socket" --save '' --dir "$work" --daemonize no --logfile "$work/log"
  wait_until answers
  check_redis
  if [ "$turn" = served ]; then
    "$sources/../../hz" doctor "$server" >"$work/doctor" || true
    grep -q "yes, line hakozuna, with jemalloc's functions" "$work/doctor" || { cat "$work/doctor" >&2; fail "hz doctor"; }
  fi
  cli shutdown nosave
  await_end
  if [ "$turn" = served ]; then
    live=$(sed -n 's/.* bytes_live=\([0-9]*\) .*/\1/p' "$work/at-end")
    expect "bytes_live at the end" $((allocated - 4 * mebi)) "$live" $((allocated + 4 * mebi))
  fi
}

both redis serve_redis

# In the place of the library that it is linked with, without a preload.
mkdir "$work/instead"
ln -s "$library" "$work/instead/libjemalloc.so.2"
LD_LIBRARY_PATH=$work/instead HZ_STATS=1 redis-server --version >"$work/version" 2>"$work/version.err"
grep -q 'malloc=jemalloc-' "$work/version" || fail "it is linked with another allocator: $(cat "$work/version")"
grep -q "^hz: stats line=$line " "$work/version.err" || { cat "$work/version.err" >&2; fail "it is not served"; }

# `hz run` takes this library for it, unasked, and says so.
HZ_BUILD_DIR=$(dirname "$library") "$sources/../../hz" run --stats -- redis-server --version >"$work/run" 2>"$work/run.err"
grep -q 'malloc=jemalloc-' "$work/run" || fail "hz run: $(cat "$work/run" "$work/run.err")"
grep -q '^hz: redis-server is linked with jemalloc: line je serves it' "$work/run.err" || fail "hz run: $(cat "$work/run.err")"
