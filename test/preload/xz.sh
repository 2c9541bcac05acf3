# SPDX-License-Identifier: Apache-2.0
#
# xz: compress 6 MB with the strongest preset and with threads, and decompress with threads; all must be the same to
# the byte.
. "$(dirname "$0")/lib.sh"
need xz awk
version "$(xz --version | awk 'NR == 1 { print $NF }')"
awk 'BEGIN {
  state = 1
  for (i = 0; i < 250000; ++i) {
    state = (state * 16807) % 2147483647
    print "line", i % 1013, state % 4000, (state % 3 ? "text that repeats" : state)
  }
}' >"$work/data"

work_of_xz() {
  head -c 1000000 "$work/data" | run xz -9 -T1 -c | cksum
  run xz -4 -T4 --block-size=1MiB -c "$work/data" >"$work/data.$turn.xz"
  cksum <"$work/data.$turn.xz"
  for _ in 1 2 3; do run xz -d -T4 -c "$work/data.$turn.xz" | cksum; done
  run xz -t -v "$work/data.$turn.xz" 2>"$work/test.err" || fail "xz -t"
  run xz --list --robot "$work/data.$turn.xz" | grep '^file'
}
both xz work_of_xz
