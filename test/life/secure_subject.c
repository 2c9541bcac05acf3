// SPDX-License-Identifier: Apache-2.0
//
// A program of which secure.sh makes setuid copies: says whether the system takes it for one (AT_SECURE), and
// frees what is not ours if it is told to. Linked with our static library.
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "hakozuna/hakozuna.h"

static char foreign[64];

int main(int argc, char** argv) {
  void* block = malloc(100);
  printf("line=%s ours=%d secure=%lu\n", hz_line(), hz_owns(block), getauxval(AT_SECURE));
  free(block);
  fflush(stdout);
  char* volatile other = foreign + 16;
  if (argc > 1) free(other);
  (void)argv;
  return 0;
}
