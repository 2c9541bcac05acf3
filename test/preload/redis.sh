# SPDX-License-Identifier: Apache-2.0
#
# redis-server: 100,000 requests of each kind by redis-benchmark, then a data check: 10,000 keys with known values are
# written, read back, saved by a forked child and read back again. Talks over a socket in the work folder.
. "$(dirname "$0")/lib.sh"
need redis-server redis-benchmark redis-cli awk
version "$(redis-server --version | awk '{ sub(/^v=/, "", $3); print $3 }')"
socket=$work/redis.sock

cli() { redis-cli -s "$socket" "$@"; }

answers() { [ "$(cli ping)" = PONG ]; }

# The commands that write, the commands that read, and what they must answer.
awk -v dir="$work" 'BEGIN {
  for (i = 1; i <= 10000; ++i) {
    length_ = 1 + i * 37 % 700
    if (i % 500 == 0) length_ = 20000
    value = sprintf("%d-", i)
    while (length(value) < length_) value = value value
    value = substr(value, 1, length_)
    printf "SET key:%d %s\r\n", i, value > (dir "/write")
    printf "GET key:%d\n", i > (dir "/read")
    print value > (dir "/expected")
  }
  for (i = 1; i <= 20000; ++i) {
    printf "RPUSH list:%d %d\r\nHSET hash:%d f%d v%d\r\nZADD zset:%d %d m%d\r\nAPPEND text:%d %d,\r\n", \
      i % 50, i, i % 50, i % 400, i, i % 50, i % 777, i % 300, i % 50, i > (dir "/write")
  }
  for (i = 0; i < 50; ++i) {
    printf "LRANGE list:%d 0 -1\nHGET hash:%d f7\nZRANGE zset:%d 0 -1 WITHSCORES\nGET text:%d\n", i, i, i, i \
      > (dir "/read_more")
  }
}'

benchmark() {
  redis-benchmark -s "$socket" -n 100000 -P 16 -c 20 -d 100 -r 5000 -q \
    -t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,mset >"$work/benchmark" 2>&1
}

check_benchmark() {
  count=$(tr '\r' '\n' <"$work/benchmark" | grep -c 'requests per second')
  [ "$count" -ge 12 ] || { cat "$work/benchmark" >&2; fail "only $count benchmarks finished"; }
  [ "$(cli info commandstats | awk -F'[=,]' '/^cmdstat_set:/ { print $2 }')" -ge 100000 ] || fail "too few SETs arrived"
  tr '\r' '\n' <"$work/benchmark" | awk '/requests per second/ { print $1 }'
  cli flushall
}

check_data() {
  cli --pipe <"$work/write" >"$work/pipe"
  grep -q 'errors: 0, replies: 90000' "$work/pipe" || { cat "$work/pipe" >&2; fail "writes were refused"; }
  cli <"$work/read" >"$work/answers"
  same "$work/expected" "$work/answers"
  cli <"$work/read_more"
  # What redis itself knows of its memory comes from malloc_usable_size.
  used=$(cli info memory | awk -F: '/^used_memory:/ { print $2 + 0 }')
  if [ "$used" -lt 5000000 ] || [ "$used" -gt 50000000 ]; then
    fail "INFO memory says $used bytes for some 10 MB of values"
  fi
}

# A child by fork saves everything while the parent goes on writing.
check_save() {
  cli bgsave
  redis-benchmark -s "$socket" -n 20000 -P 16 -q -t lpush,lpop >/dev/null
  tries=0
  while cli info persistence | grep -q '^rdb_bgsave_in_progress:1'; do
    tries=$((tries + 1))
    [ "$tries" -le 300 ] || fail "the forked child hangs"
    sleep 0.1
  done
  cli info persistence | grep '^rdb_last_bgsave_status:ok' || fail "the forked child failed"
  cli <"$work/read" >"$work/answers"
  same "$work/expected" "$work/answers"
}

serve_redis() {
  serve redis-server --port 0 --unixsocket "$socket" --save '' --dir "$work" --daemonize no --logfile "$work/log"
  wait_until answers
  timed benchmark
  check_benchmark
  check_data
  check_save
  peak_of "$server"
  cli shutdown nosave
  await_end
}
both redis serve_redis
