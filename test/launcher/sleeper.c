// SPDX-License-Identifier: Apache-2.0
//
// sleeper SECONDS: what sleep(1) does, for the launcher's tests; linked statically once, and once with a
// malloc of its own (own_malloc.c).
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  void* volatile block = malloc(1);
  sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
  free(block);
  return 0;
}
