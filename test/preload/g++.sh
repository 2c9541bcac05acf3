# SPDX-License-Identifier: Apache-2.0
#
# g++: compile a file heavy with templates; the object must be the same to the byte, and the program, which runs served
# by us as well, must say the same.
. "$(dirname "$0")/lib.sh"
need g++ as ld
version "$(g++ -dumpfullversion)"
compile() {
  cd "$work"
  run g++ -std=c++17 -O2 -g -c "$sources/templates.cpp" -o templates.o
  run g++ templates.o -pthread -o "templates.$turn"
  cksum <templates.o
}
both compile compile
# The driver, the compiler proper, the assembler, the linker and its driver each had a heap of ours.
count=$(grep -c "$told" "$work/compile.served.all")
[ "$count" -ge 5 ] || fail "only $count of the compiler's programs were served"
both templates run "$work/templates.served"
