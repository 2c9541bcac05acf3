# SPDX-License-Identifier: Apache-2.0
#
# golden.sh LIBRARY PROGRAM FUNCTIONS CALLS BLOCKS LIMITS GOLDEN: counts the instructions that LIBRARY spends on one
# allocation and its release, in each of the ways that PROGRAM goes through with so many BLOCKS: a function for each,
# whose name begins with FUNCTIONS, of which the last of CALLS calls counts. LIMITS is the file of what each may cost at
# most under any compiler, GOLDEN that of the exact values, or "-" where there are none for the build. Both have a row per
# line and a column per way; the heads of LIMITS' columns name the ways. HZ_TEST_LINE names the line. Exit code 77:
# valgrind is not to be had (a failure under CI=true).
set -eu
library=$1
program=$2
functions=$3
calls=$4
pairs=$5
limits=$6
golden=$7
line=${HZ_TEST_LINE:?the name of the line}
ways=$(sed -n 's/^# line *//p' "$limits")

if ! command -v valgrind >/dev/null; then
  [ "${CI:-}" = true ] && { echo "FAILED: valgrind is missing" >&2; exit 1; }
  echo "skipped: valgrind is missing"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
object=$(readlink -f "$library")

# Prints the instructions in the library by the callgrind file $1, per pair.
count() {
  # In the file, names are given once as "(id) name" and then as "(id)"; a line after "calls=" is the callee's cost.
  awk -v object="$object" -v pairs="$pairs" '
    function named(text, names,   id) {
      id = text
      sub(/\).*/, ")", id)
      if (index(text, " ")) names[id] = substr(text, index(text, " ") + 1)
      return names[id]
    }
    /^ob=/ { ours = named(substr($0, 4), objects) == object; next }
    /^cob=/ { named(substr($0, 5), objects); next }
    /^calls=/ { getline; next }
    /^[0-9+*-]/ { if (ours) all += $2 }
    END { printf "%.4g\n", all / pairs }' "$1"
}
# Prints the value in column $2 of the row of our line in file $1.
row() { awk -v line="$line" -v at="$(($2 + 1))" '$1 == line { print $at }' "$1"; }
# Whether $1 is $2: a number, or NUMBER+-MOST.
is_golden() { awk -v now="$1" -v wanted="$2" 'BEGIN { n = split(wanted, w, /\+-/); d = now - w[1]; exit !(n > 0 && d <= w[2] + 0 && -d <= w[2] + 0) }'; }

# Counts each way once more, and keeps the least in $work/least, a line for each. What the clock asks for is extra: it
# comes where the machine is so busy that a sweep falls due.
count_all() {
  LD_PRELOAD=$object valgrind --tool=callgrind --callgrind-out-file="$work/out" --dump-after="$functions*" \
    "$program" "$pairs" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
  column=0
  for way in $ways; do
    column=$((column + 1))
    count "$work/out.$((calls * column))"
  done >"$work/now"
  if [ -e "$work/least" ]; then
    paste "$work/least" "$work/now" | awk '{ print $1 < $2 ? $1 : $2 }' >"$work/both"
    mv "$work/both" "$work/least"
  else
    mv "$work/now" "$work/least"
  fi
}
# Prints what is wrong with the least counts.
faults() {
  column=0
  for way in $ways; do
    column=$((column + 1))
    now=$(sed -n "${column}p" "$work/least")
    limit=$(row "$limits" $column)
    # Also refuses a count of nothing: then the library did not serve the program.
    awk -v now="$now" -v limit="${limit:-0}" 'BEGIN { exit !(now > 0 && now <= limit) }' ||
      echo "FAILED: $way: $now is not within 1 to ${limit:-nothing}"
    [ "$golden" = - ] || is_golden "$now" "$(row "$golden" $column)" ||
      echo "FAILED: $way: $golden says $(row "$golden" $column), counted $now"
  done
}

for attempt in 1 2 3; do
  count_all
  faults >"$work/faults"
  [ -s "$work/faults" ] || break
done
cat "$work/faults" >&2
echo "$line: instructions of $ways: $(paste -s -d ' ' "$work/least")"
[ ! -s "$work/faults" ]
