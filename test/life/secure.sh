# SPDX-License-Identifier: Apache-2.0
#
# secure.sh PROGRAM: options from the environment count for nothing in a setuid program, and for something in the same
# program without that bit. HZ_TEST_LINE names the line. Needs root, to make a setuid program; 77 where that is not to
# be had (a failure under CI=true).
set -eu
program=${1:?the program to copy}
line=${HZ_TEST_LINE:?the name of its line}

skip() {
  [ "${CI:-}" = true ] && { echo "FAILED: $*" >&2; exit 1; }
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "FAILED: $*" >&2
  cat "$work/out" "$work/err" >&2
  exit 1
}
[ "$(id -u)" = 0 ] || skip "only root can make a program setuid to somebody else"
command -v setpriv >/dev/null || skip "setpriv is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work"
cp "$program" "$work/plain"
cp "$program" "$work/setuid"
chown 1 "$work/setuid"
chmod 755 "$work/plain"
chmod 4755 "$work/setuid"

# as_user COPY [ARGUMENT]: run by user 65534 with every option set; the exit code is in $code
as_user() {
  code=0
  HZ_STATS=1 HZ_ON_INVALID=report HZ_OPTIONS=stats:json,retain:banana \
    setpriv --reuid 65534 --regid 65534 --clear-groups "$work/$1" ${2:+"$2"} >"$work/out" 2>"$work/err" || code=$?
}

as_user plain
[ "$(cat "$work/out")" = "line=$line ours=1 secure=0" ] || fail "the plain copy"
grep -q "^hz: stats line=$line " "$work/err" || fail "options are not heard at all"
grep -q "HZ_RETAIN=banana" "$work/err" || fail "a bad option is not told"
as_user plain foreign
[ "$code" = 0 ] || fail "HZ_ON_INVALID=report is not heard at all"

as_user setuid
[ "$(cat "$work/out")" != "line=$line ours=1 secure=0" ] || skip "$work is on a file system without setuid"
[ "$(cat "$work/out")" = "line=$line ours=1 secure=1" ] || fail "the setuid copy"
[ "$code" = 0 ] || fail "exit code $code"
[ ! -s "$work/err" ] || fail "an option was read in a setuid program"
as_user setuid foreign
[ "$code" = 134 ] || fail "exit code $code: HZ_ON_INVALID was read in a setuid program"
grep -q "^hz: fatal: E01 " "$work/err" || fail "no fatal report"
