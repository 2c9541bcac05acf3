// SPDX-License-Identifier: Apache-2.0
// The child of a fork allocates blocks. They lie side by side, and not between blocks of its parent: each
// page that both have is copied when one of them writes to it.
//
// run: 1000
// prints: ok
// alone
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kParents = 200000, kChilds = 20000, kLeast = 16, kMoreKiB = 5 << 10 };

// Pages that no other process has.
static long private_kib(void) {
  long kib = -1;
  char line[256];
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) exit(77);
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "Private_Dirty: %ld", &kib) == 1) break;
  fclose(file);
  return kib;
}

static unsigned next(void) {
  static unsigned state = 7;
  return state = state * 1103515245 + 12345;
}
static size_t size_up_to(size_t most) { return kLeast + (next() >> 8) % (most - kLeast); }

static int child(size_t most) {
  static char* blocks[kChilds];
  const long before = private_kib();
  size_t asked = 0;
  for (int i = 0; i < kChilds; ++i) {
    const size_t size = size_up_to(most);
    blocks[i] = malloc(size);
    blocks[i][0] = 1;
    asked += size;
  }
  const long copied = private_kib() - before, bound = (long)(asked >> 10) + kMoreKiB;
  if (before < 0 || copied > bound) return printf("%ld KiB were copied, %ld may be\n", copied, bound), 1;
  for (int i = 0; i < kChilds; ++i) free(blocks[i]);
  return 0;
}

int main(int argc, char** argv) {
  static char* blocks[kParents];
  const size_t most = argc > 1 ? (size_t)atoi(argv[1]) : 200;
  for (int i = 0; i < kParents; ++i) memset(blocks[i] = malloc(size_up_to(most)), 1, kLeast);
  for (int i = 0; i < kParents; ++i)
    if ((next() >> 9 & 1) != 0) free(blocks[i]);
  fflush(stdout);
  const pid_t made = fork();
  if (made == 0) {
    const int answer = child(most);
    fflush(stdout);
    _exit(answer);
  }
  int status = 0;
  if (made < 0 || waitpid(made, &status, 0) != made || status != 0) return 1;
  return puts("ok"), 0;
}
