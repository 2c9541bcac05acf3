# SPDX-License-Identifier: Apache-2.0
#
# golden.sh LIBRARY PROGRAM LIMIT GOLDEN: counts the instructions of one malloc and one free inside LIBRARY.
# Fails above LIMIT. GOLDEN is the file of exact values that must be met, or "-" where the build is not the one that
# they were taken from. HZ_TEST_LINE names the line. Exit code 77: valgrind is not to be had (a failure under CI=true).
set -eu
library=$1
program=$2
limit=$3
golden=$4
line=${HZ_TEST_LINE:?the name of the line}
pairs=100000

if ! command -v valgrind >/dev/null; then
  [ "${CI:-}" = true ] && { echo "FAILED: valgrind is missing" >&2; exit 1; }
  echo "skipped: valgrind is missing"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
object=$(readlink -f "$library")

# Prints "<instructions in the library> <those in malloc> <those in free>" of a run with $1 pairs.
count() {
  LD_PRELOAD=$object valgrind --tool=callgrind --callgrind-out-file="$work/out" "$program" "$1" 2>"$work/log" ||
    { cat "$work/log" >&2; exit 1; }
  # In the file, names are given once as "(id) name" and then as "(id)"; a line after "calls=" is the callee's cost.
  awk -v object="$object" '
    function named(text, names,   id) {
      id = text
      sub(/\).*/, ")", id)
      if (index(text, " ")) names[id] = substr(text, index(text, " ") + 1)
      return names[id]
    }
    /^ob=/ { ours = named(substr($0, 4), objects) == object; next }
    /^cob=/ { named(substr($0, 5), objects); next }
    /^fn=/ { function_ = named(substr($0, 4), functions); next }
    /^cfn=/ { named(substr($0, 5), functions); next }
    /^calls=/ { getline; next }
    /^[0-9+*-]/ { if (ours) { all += $2; each[function_] += $2 } }
    END { printf "%d %d %d\n", all, each["malloc"], each["free"] }' "$work/out"
}

once=$(count "$pairs")
twice=$(count $((2 * pairs)))
# shellcheck disable=SC2086
set -- $once $twice
result=$(awk -v n="$pairs" -v a1="$1" -v m1="$2" -v f1="$3" -v a2="$4" -v m2="$5" -v f2="$6" \
  'BEGIN { printf "%.4g %.4g %.4g\n", (a2 - a1) / n, (m2 - m1) / n, (f2 - f1) / n }')
pair=${result%% *}
echo "$line: $pair instructions a pair (all in the library, malloc alone, free alone: $result), at most $limit"

# Also refuses a count of nothing: then the library did not serve the program.
awk -v pair="$pair" -v limit="$limit" 'BEGIN { exit !(pair > 0 && pair <= limit) }' ||
  { echo "FAILED: $pair is not within 1 to $limit" >&2; exit 1; }

[ "$golden" = - ] && exit 0
expected=$(awk -v line="$line" '$1 == line { print $2 }' "$golden")
[ "$pair" = "$expected" ] ||
  { echo "FAILED: $golden says ${expected:-nothing} for $line, counted $pair" >&2; exit 1; }
