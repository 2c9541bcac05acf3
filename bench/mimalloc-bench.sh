#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs benchmarks of mimalloc-bench (https://github.com/daanx/mimalloc-bench) with our lines and the lab's peers:
#   bench/mimalloc-bench.sh [--lines NAMES] [--peers NAMES] [--rounds N] CHECKOUT [WORDS OF ITS bench.sh...]
# CHECKOUT is a tree of it whose benchmarks are built (`./build-bench-env.sh bench`). Its own bench.sh does the work: it is
# told of our libraries by --external, and of tests, its own allocators and options by the WORDS. Prints a table of
# medians. Called by hand; doc/lab.md says how to read it. Takes as long as the tests do, N times for each allocator.
set -u

root=$(cd "$(dirname "$0")/.." && pwd -P) || exit 125
lines=hakozuna
peers=
rounds=5

fail() {
  printf 'mimalloc-bench.sh: %s\n' "$*" >&2
  exit 125
}

while [ $# -gt 0 ]; do
  case $1 in
    --lines | --peers | --rounds)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in --lines) lines=$2 ;; --peers) peers=$2 ;; *) rounds=$2 ;; esac
      shift
      ;;
    -*) fail "unknown option $1; see the head of this file" ;;
    *) break ;;
  esac
  shift
done
[ $# -ge 2 ] || fail "which tree, and which tests? See the head of this file"
case $rounds in '' | *[!0-9]* | 0*) fail "--rounds needs a number" ;; esac
folder=$1/out/bench
shift
[ -x "$folder/../../bench.sh" ] || fail "there is no bench.sh two folders above $folder"
[ -x "$folder/cfrac" ] || fail "the benchmarks are not built: there is no $folder/cfrac"

# A line of its file: a name and a library, which must serve a program that is started with it.
offer() { # NAME LIBRARY
  case $2 in *[\ :]*) fail "LD_PRELOAD cannot name a path with a space or a colon: $2" ;; esac
  LD_PRELOAD=$2 cat /proc/self/maps 2>/dev/null | grep -qF "$2" || fail "$1: $2 cannot be preloaded"
  printf '%s %s\n' "$1" "$2" >>"$offers"
}

split() { printf '%s' "$1" | tr ',' ' '; }

offers=$(mktemp) || exit 125
trap 'rm -f "$offers"' EXIT
for line in $(split "$lines"); do
  library=$("$root/hz" for-checks library "$line") || exit 125
  offer "$line" "$(readlink -f "$library")"
done
for peer in $(split "$peers"); do
  [ -f "$root/build/peers/lib$peer.so" ] || fail "there is no peer $peer in build/peers: ./hz peers --build $peer"
  offer "$peer" "$root/build/peers/lib$peer.so"
done
export TCMALLOC_DISABLE_MADV_HUGEPAGE=1 # Google's, built by us: what its project calls the default

# With -r the rounds are interleaved: each allocator runs a test once, one after the other, and then all again.
(cd "$folder" && ../../bench.sh "--external=$offers" "-r=$rounds" "$@") || fail "bench.sh ended with an error"

# Its results: test, allocator, elapsed as [h:]m:s, KiB resident at the highest, and more.
printf '\n| test | allocator | seconds, median | lowest | highest | peak MiB | runs |\n|---|---|---|---|---|---|---|\n'
sort -k1,1 -k2,2 "$folder/benchres.csv" | awk '
  function tell(    i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && time[j] < time[j - 1]; j--) { t = time[j]; time[j] = time[j - 1]; time[j - 1] = t }
    for (i = 2; i <= n; i++) for (j = i; j > 1 && rss[j] < rss[j - 1]; j--) { t = rss[j]; rss[j] = rss[j - 1]; rss[j - 1] = t }
    i = int((n + 1) / 2)
    printf "| %s | %s | %.3f | %.3f | %.3f | %.1f | %d |\n", test, allocator, time[i], time[1], time[n], rss[i] / 1024, n
  }
  /^#/ || NF < 4 { next }
  $1 != test || $2 != allocator { if (n) tell(); n = 0; test = $1; allocator = $2 }
  {
    n++
    count = split($3, part, ":")
    time[n] = 0
    for (i = 1; i <= count; i++) time[n] = 60 * time[n] + part[i]
    rss[n] = $4 + 0
  }
  END { if (n) tell() }'
