#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# golden_emulated.sh QEMU PLUGIN LIBRARY PROGRAM GOLDEN: as golden.sh, for a processor that QEMU emulates. The plugin
# counts what a run executes in LIBRARY; from two runs of different length follows what a pair costs. GOLDEN: the exact
# values, or "-" to print them alone.
set -eu
qemu=$1 plugin=$2 library=$(readlink -f "$3") program=$4 golden=$5
line=${HZ_TEST_LINE:?the name of the line}
few=2000 many=12000

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

executed() { # PAIRS WAY
  "$qemu" -plugin "$plugin,object=$library,out=$work/count" -E LD_PRELOAD="$library" "$program" "$1" "$2"
  cat "$work/count"
}

counted=
for way in 1 2 3 4 5 6 7; do
  now=$(echo "$(executed $few $way) $(executed $many $way)" |
    awk -v pairs=$((many - few)) '{ printf "%.4g", ($2 - $1) / pairs }')
  # Nothing was counted: then the library did not serve the program.
  [ "$now" != 0 ] || { echo "FAILED: way $way cost nothing" >&2; exit 1; }
  counted="$counted $now"
done
echo "$line: instructions of malloc new sized aligned calloc realloc usable:$counted"
[ "$golden" = - ] || [ "$(echo "$line$counted" | tr -s ' ')" = "$(grep "^$line " "$golden" | tr -s ' ')" ] ||
  { echo "FAILED: $golden says $(grep "^$line " "$golden")" >&2; exit 1; }
