# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Shared by the tests of real programs: each is run twice, plainly and served by our library, and must do the same.
# Called as `sh <test>.sh LIBRARY`, with HZ_TEST_LINE naming the line. Exit codes: 0, 1, or 77 for "not to be had here"
# (which is a failure under CI=true, where everything must be there).

set -eu
library=${1:?the library to preload}
line=${HZ_TEST_LINE:?the name of its line}
# shellcheck disable=SC2034  # for the scripts that read this one
sources=$(cd "$(dirname "$0")" && pwd)
unset LD_PRELOAD HZ_STATS HZ_ON_INVALID HZ_THREAD_CACHE HZ_RETAIN HZ_OPTIONS
export LC_ALL=C TZ=UTC

work=$(mktemp -d)
at_exit() { rm -rf "$work"; }
trap at_exit EXIT
trap 'exit 1' HUP INT TERM

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

need() {
  for program in "$@"; do
    command -v "$program" >/dev/null && continue
    [ "${CI:-}" = true ] && fail "$program is missing"
    echo "skipped: $program is missing"
    exit 77
  done
}

# plainly NAME COMMAND…: output goes to $work/NAME.plain.out and .err
plainly() {
  name=$1
  shift
  "$@" >"$work/$name.plain.out" 2>"$work/$name.plain.err" ||
    { cat "$work/$name.plain.err" >&2; fail "$name fails without us"; }
}

# served NAME COMMAND…: the same under our library, output to $work/NAME.served.*
served() {
  name=$1
  shift
  LD_PRELOAD=$library HZ_STATS=1 "$@" >"$work/$name.served.out" 2>"$work/$name.served.all" ||
    { code=$?; tail -n 50 "$work/$name.served.all" >&2; fail "$name under $line: exit code $code"; }
  check_stats "$work/$name.served.all"
  grep -v '^hz: stats ' "$work/$name.served.all" >"$work/$name.served.err" || true
}

# The statistics line proves that the line was in effect; no other line of ours may be there.
check_stats() {
  grep -q "^hz: stats line=$line " "$1" || { cat "$1" >&2; fail "no statistics line of $line"; }
  if grep '^hz: ' "$1" | grep -v "^hz: stats line=$line " >&2; then fail "the allocator complained"; fi
}

same() {
  cmp "$1" "$2" || { diff -u "$1" "$2" | head -n 40 >&2; fail "$1 and $2 differ"; }
}

# both NAME COMMAND…: run both ways, and compare what was written
both() {
  plainly "$@"
  served "$@"
  [ -s "$work/$1.plain.out" ] || fail "$1 wrote nothing: the comparison would prove nothing"
  same "$work/$1.plain.out" "$work/$1.served.out"
  same "$work/$1.plain.err" "$work/$1.served.err"
}
