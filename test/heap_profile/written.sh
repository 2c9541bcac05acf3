# SPDX-License-Identifier: Apache-2.0
#
# written.sh LIBRARY: when and where the heap profile is written: at exit, by the user's name or by the default one, when
# SIGTERM ends the program, by each process of its own; and what is said if it cannot be. HZ_TEST_LINE is the line.
set -eu
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# Of a whole file of that process.
expect_profile() {
  [ "$(head -n 1 "$1")" = "hakozuna heap profile 1" ] || fail "$1 does not begin"
  [ "$(tail -n 1 "$1")" = end ] || fail "$1 does not end"
  grep -q "^process $2 /" "$1" || fail "$1 is not of process $2"
  grep -q '^site ' "$1" || fail "$1 has no site"
}
run() {
  env LD_PRELOAD="$library" "$@"
}

if [ "$HZ_TEST_LINE" = hz7 ]; then
  said=$(run HZ_PROFILE_HEAP=1 true 2>&1)
  [ "$said" = "hz: warning: line hz7 keeps no heap profile; HZ_PROFILE_HEAP ignored" ] || fail "said: $said"
  [ -z "$(ls)" ] || fail "hz7 wrote a profile: $(ls)"
  exit 0
fi

# By the default name, in the folder where it began.
env LD_PRELOAD="$library" HZ_PROFILE_HEAP=64 sort /etc/passwd >/dev/null &
sorter=$!
wait "$sorter"
expect_profile "hakozuna.$sorter.heap" "$sorter"
run HZ_PROFILE_HEAP=64 HZ_PROFILE_HEAP_FILE="$work/one" sort /etc/passwd >/dev/null
expect_profile one '[0-9]*'
grep -q '^site .*| [0-9a-f]* [0-9a-f]*' one || fail "no stack has more than one frame"

# Its name is the one that it was started by.
ln -s "$(command -v sort)" by-a-link
run HZ_PROFILE_HEAP=64 HZ_PROFILE_HEAP_FILE="$work/linked" ./by-a-link /etc/passwd >/dev/null
expect_profile linked '[0-9]*'
grep -q '^name by-a-link$' linked || fail "its name is $(grep '^name' linked)"
rm by-a-link linked

# The file alone asks for a profile; each process writes its own. (The shell itself may leave without exit handlers.)
run HZ_PROFILE_HEAP_FILE="$work/of.%p" sh -c 'sort /etc/passwd; sort /etc/passwd; true' >/dev/null
[ "$(ls of.* | wc -l)" -ge 2 ] || fail "two processes wrote $(ls of.*)"
rm of.*

# SIGTERM, wherever it is met.
env LD_PRELOAD="$library" HZ_PROFILE_HEAP=64 HZ_PROFILE_HEAP_FILE="$work/ended" sleep 60 &
sleeper=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.1
  grep -q libhakozuna "/proc/$sleeper/maps" 2>/dev/null && break
done
sleep 0.1
kill -TERM "$sleeper"
wait "$sleeper" || [ $? = 143 ] || fail "SIGTERM did not end it"
[ "$(tail -n 1 ended)" = end ] || fail "nothing was written at SIGTERM"

# Nowhere.
said=$(run HZ_PROFILE_HEAP=64 HZ_PROFILE_HEAP_FILE=/no/such/folder/file true 2>&1)
[ "$said" = "hz: warning: heap profile /no/such/folder/file: it cannot be written" ] || fail "said: $said"
# Without room for its tables, which are larger, the program runs as it would without one.
said=$(ulimit -v 16000 && run HZ_PROFILE_HEAP=64 true 2>&1) || fail "without memory for a profile: $said"
[ "$said" = "hz: warning: heap profile: there is no memory for one" ] || fail "said: $said"
# Off, and not understood.
said=$(run HZ_PROFILE_HEAP=0 true 2>&1)
[ -z "$said" ] || fail "said: $said"
said=$(run HZ_PROFILE_HEAP=2G true 2>&1)
[ "$said" = "hz: warning: HZ_PROFILE_HEAP=2G not understood; accepted: 0, 1, 2 to 1G" ] || fail "said: $said"
# Of the one that is off nothing was written.
[ "$(ls | wc -l)" = 3 ] || fail "files: $(ls)"
