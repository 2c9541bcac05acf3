# SPDX-License-Identifier: Apache-2.0
#
# clang: compile a file heavy with templates; the object must be the same to the byte, and the program, which runs
# served by us as well, must say the same.
. "$(dirname "$0")/lib.sh"
need clang++ ld
version "$(clang++ -dumpversion)"
compile() {
  cd "$work"
  run clang++ -std=c++17 -O1 -g -c "$sources/templates.cpp" -o templates.o
  run clang++ templates.o -pthread -o "templates.$turn"
  cksum <templates.o
}
both compile compile
both templates run "$work/templates.served"
