# SPDX-License-Identifier: Apache-2.0
#
# gcc: a generated C file of 400 functions and large tables, optimised, with debug information and link-time
# optimisation; object and program must be the same to the byte.
. "$(dirname "$0")/lib.sh"
need gcc awk
version "$(gcc -dumpfullversion)"

awk 'BEGIN {
  print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
  for (f = 0; f < 400; ++f) {
    printf "static const unsigned table%d[] = {", f
    for (i = 0; i < 40; ++i) printf "%d,", (f * 7919 + i * 104729) % 65521
    printf "};\nstatic unsigned f%d(unsigned x) {\n  for (unsigned i = 0; i < 40; ++i) {\n", f
    printf "    switch ((x ^ table%d[i]) %% 7) {\n", f
    for (i = 0; i < 7; ++i) {
      printf "      case %d: x = x * %du + table%d[(x + %d) %% 40]; break;\n", i, 2 * (f + i) + 3, f, i
    }
    print "    }\n  }\n  return x;\n}"
  }
  print "int main(void) {\n  unsigned x = 1;"
  for (f = 0; f < 400; ++f) printf "  x = f%d(x);\n", f
  print "  char* text = malloc(100);\n  snprintf(text, 100, \"%u\", x);\n  puts(text);\n  free(text);\n}"
}' >"$work/generated.c"

compile() {
  cd "$work"
  run gcc -std=c11 -O2 -g -flto -fno-ident -frandom-seed=1 -c generated.c -o generated.o
  run gcc -O1 -g -flto=1 -frandom-seed=1 generated.o -o "generated.$turn"
  cksum <generated.o
  strip -o stripped "generated.$turn"
  cksum <stripped
}
both compile compile
both generated run "$work/generated.served"
