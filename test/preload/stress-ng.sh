# SPDX-License-Identifier: Apache-2.0
#
# stress-ng: two processes of its malloc stressor, which checks what it wrote into its blocks: small blocks, then large
# ones by four threads each that touch every page, then huge ones. HZ_TEST_LONG=1: a minute each.
. "$(dirname "$0")/lib.sh"
need stress-ng
version "$(stress-ng --version | awk '{ print $3 }')"
if [ -n "${HZ_TEST_LONG:-}" ]; then stop='--timeout 60'; else stop=; fi

# Without names of processes and the time it took.
stress() { # OPERATIONS OPTIONS…
  operations=$1
  shift
  # shellcheck disable=SC2086  # a list of words
  run stress-ng --verify --temp-path "$work" --seed 1 --malloc 2 ${stop:---malloc-ops $operations} "$@" \
    >"$work/said" 2>"$work/said.err" ||
    { cat "$work/said" "$work/said.err" >&2; fail "stress-ng $*"; }
  grep "$told" "$work/said.err" >&2 || true
  grep -h -v "$told" "$work/said" "$work/said.err" |
    sed -E 's/\[[0-9]+\] //; s/in [0-9.]+s.*//; s/ \([0-9.]+ secs\)//; s/[0-9]+ secs?//'
}

work_of_stress() {
  stress 100000
  stress 5000 --malloc-bytes 200K --malloc-pthreads 4 --malloc-touch
  stress 10000 --malloc-bytes 16M --malloc-max 64 --malloc-thresh 65536
}
both stress-ng work_of_stress
if grep skip "$work/stress-ng.served.out" >&2; then fail "stress-ng skipped something"; fi
