# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Shared by the tests of real programs: each does the same work twice, plainly and served by our library, and must say
# the same. Called as `sh <program>.sh LIBRARY`, with HZ_TEST_LINE naming the line. Exit codes: 0, 1, or 77 for "not to
# be had here" (which is a failure under CI=true, where everything must be there) and for a program that fails without us.
#
# programs.py, which makes the table of `hz programs`, calls the same scripts and adds HZ_TEST_REPORT=FILE: then what
# `run` and `timed` start is measured too, and FILE gets lines "version TEXT" and "plain|served SECONDS PEAK-KIB".
# HZ_TEST_TURNS="served plain" turns the order round.

set -eu
library=$(cd "$(dirname "${1:?the library to preload}")" && pwd)/${1##*/}
line=${HZ_TEST_LINE:?the name of its line}
report=${HZ_TEST_REPORT:-}
turns=${HZ_TEST_TURNS:-plain served}
turn=plain
# shellcheck disable=SC2034  # for the scripts that read this one
sources=$(cd "$(dirname "$0")" && pwd)
unset LD_PRELOAD HZ_STATS HZ_ON_INVALID HZ_THREAD_CACHE HZ_RETAIN HZ_BACKGROUND HZ_LIMIT_SOFT HZ_LIMIT_HARD HZ_OPTIONS
export LC_ALL=C TZ=UTC

# Where what a crash leaves behind goes too.
work=$(mktemp -d)
cd "$work"
server=
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

absent() { # WHAT
  [ "${CI:-}" = true ] && fail "$1 is missing"
  echo "skipped: $1 is missing"
  exit 77
}

need() { # PROGRAMS…
  for program in "$@"; do command -v "$program" >/dev/null || absent "$program"; done
}

# The distribution's own, where there is one: what comes first on PATH may be a script that looks for the program.
program() { # NAME
  if [ -x "/usr/bin/$1" ]; then echo "/usr/bin/$1"; else command -v "$1"; fi
}

version() { # TEXT…
  if [ -n "$report" ]; then echo "version $*" >>"$report"; fi
}

# Every heap of ours says one line when it opens, about the option `tell` that it does not know: a proof which leaves
# the heap as it is for users. Statistics would not, since a heap that counts takes none of its fast paths.
told='^hz: warning: HZ_OPTIONS=tell '

# run COMMAND…: the program itself; served when it is our turn, measured when asked for.
run() {
  if [ "$turn" = served ]; then set -- env LD_PRELOAD="$library" HZ_OPTIONS=tell:1 "$@"; fi
  if [ -n "$report" ]; then set -- /usr/bin/time -q -a -o "$work/$turn.times" -f '%e %M' "$@"; fi
  "$@"
}

# both NAME COMMAND…: COMMAND, mostly a function that calls `run`, in both turns; then what was written is compared.
both() {
  both_name=$1
  both_plain=
  shift
  for turn in $turns; do in_turn "$@"; done
  [ -s "$work/$both_name.plain.out" ] || fail "$both_name wrote nothing: the comparison would prove nothing"
  same "$work/$both_name.plain.out" "$work/$both_name.served.out"
  same "$work/$both_name.plain.err" "$work/$both_name.served.err"
}

# Output goes to $work/NAME.TURN.out and .err; .all has the lines of ours, too.
in_turn() { # COMMAND…
  written=$work/$both_name.$turn
  set +e
  (
    trap stop_server EXIT
    set -e
    "$@"
  ) >"$written.out" 2>"$written.all"
  code=$?
  set -e
  if [ "$code" -ne 0 ]; then
    tail -n 50 "$written.out" "$written.all" >&2
    [ "$turn" = plain ] && fails_here "$code"
    # Where served comes first: is it us?
    served_code=$code
    if [ -z "$both_plain" ]; then
      turn=plain
      in_turn "$@"
    fi
    fail "$both_name served by $line: exit code $served_code"
  fi
  if [ "$turn" = plain ]; then both_plain=done; fi
  grep -v "$told" "$written.all" >"$written.err" || true
  if [ "$turn" = served ]; then check_told "$written.all"; fi
  if [ -n "$report" ] && [ -f "$work/$turn.times" ]; then
    awk -v turn="$turn" '{ seconds += $1; if ($2 > peak) peak = $2 } END { print turn, seconds, peak }' \
      "$work/$turn.times" >>"$report"
    rm "$work/$turn.times"
  fi
}

# A program that does not work on this machine proves nothing about us. What it said stands above.
fails_here() { # CODE
  echo "skipped: $both_name fails without us on this machine: exit code $1"
  exit 77
}

# At least one heap of ours opened, and none had anything else to say.
check_told() { # STDERR-FILE
  if grep '^hz: ' "$1" | grep -v "$told" >&2; then fail "the allocator complained"; fi
  grep -q "$told" "$1" || { cat "$1" >&2; fail "no heap of $line opened"; }
}

same() { # FILE FILE
  cmp "$1" "$2" || { diff -a -u "$1" "$2" | head -n 40 >&2; fail "$1 and $2 differ"; }
}

# The library is that of the line: its own word for it.
LD_PRELOAD=$library HZ_STATS=1 ls / 2>"$work/stats" >/dev/null || true
grep -q "^hz: stats line=$line " "$work/stats" || { cat "$work/stats" >&2; fail "$library is not of line $line"; }

# --- servers, started and stopped within one turn

# serve COMMAND…: in the background, its pid in $server; what it writes goes to $work/TURN.server.out and .err.
serve() {
  if [ "$turn" = served ]; then set -- env LD_PRELOAD="$library" HZ_OPTIONS=tell:1 "$@"; fi
  (exec "$@") >"$work/$turn.server.out" 2>"$work/$turn.server.err" &
  server=$!
}

# wait_until COMMAND…: until COMMAND succeeds, which means that the server answers
wait_until() {
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ] || ! kill -0 "$server" 2>/dev/null; then
      tail -n 50 "$work/$turn.server.out" "$work/$turn.server.err" >&2
      fail "the server did not come up"
    fi
    sleep 0.1
  done
  if [ "$turn" = served ]; then
    grep -qF "$(readlink -f "$library")" "/proc/$server/maps" || fail "our library is not in the server's maps"
  fi
}

# timed COMMAND…: what clients do; the time counts for the server.
timed() {
  began=$(date +%s%N)
  "$@"
  ended=$(date +%s%N)
  if [ -n "$report" ]; then
    awk -v began="$began" -v ended="$ended" 'BEGIN { print (ended - began) / 1e9, 0 }' >>"$work/$turn.times"
  fi
}

# peak_of PIDS…: what these processes needed at most, added up
peak_of() {
  [ -n "$report" ] || return 0
  for pid in "$@"; do cat "/proc/$pid/status"; done | awk '/^VmHWM:/ { sum += $2 } END { print 0, sum }' \
    >>"$work/$turn.times"
}

# end_server [SIGNAL]: it must end well and have said nothing of ours
end_server() {
  kill "-${1:-TERM}" "$server"
  await_end
}

await_end() {
  code=0
  wait "$server" || code=$?
  server=
  [ "$code" -eq 0 ] || { tail -n 50 "$work/$turn.server.err" >&2; fail "the server ended with $code"; }
  if [ "$turn" = served ]; then check_told "$work/$turn.server.err"; fi
  # For in_turn, which looks for a heap of ours in what the turn wrote.
  grep "$told" "$work/$turn.server.err" | head -n 1 >&2 || true
}

stop_server() {
  if [ -n "$server" ]; then
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
  fi
}
