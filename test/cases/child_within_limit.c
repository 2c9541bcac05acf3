// SPDX-License-Identifier: Apache-2.0
// A process fills its heap up to a hard limit and frees every second block. Its children, and theirs, keep to
// spans of their own as long as there is room for these, and then have the free slots of the others.
//
// run: HZ_LIMIT_HARD=64M
// run: HZ_LIMIT_HARD=64M HZ_LIMIT_SOFT=32M
// prints: ok
// alone
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMost = 200000, kSize = 1000, kGenerations = 3 };
static char* blocks[kMost];

static int fill(void) {
  int filled = 0;
  for (int i = 0; i < kMost; ++i) {
    if (blocks[i] != NULL) continue;
    if ((blocks[i] = malloc(kSize)) == NULL) break;
    memset(blocks[i], i & 127, kSize);
    ++filled;
  }
  return filled;
}
static int thin(void) {
  int freed = 0;
  for (int i = 0; i < kMost && blocks[i] != NULL; i += 2, ++freed) free(blocks[i]), blocks[i] = NULL;
  return freed;
}
static int are_whole(void) {
  for (int i = 0; i < kMost; ++i)
    for (int k = 0; blocks[i] != NULL && k < kSize; ++k)
      if (blocks[i][k] != (i & 127)) return 0;
  return 1;
}

// Returns an exit code: of the last generation, or of the first that fails.
static int generation(int number) {
  const int freed = thin(), filled = fill();
  // A little more or less may be cached, or in a span of its own.
  if (filled < freed - freed / 10)
    return printf("generation %d: %d freed, %d filled\n", number, freed, filled), fflush(stdout), 1;
  if (!are_whole()) return printf("generation %d: blocks overlap\n", number), fflush(stdout), 1;
  if (number == kGenerations) {
    for (int i = 0; i < kMost; ++i) free(blocks[i]);
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) _exit(generation(number + 1));
  int status = 0;
  return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int main(void) {
  if (fill() == kMost) return puts("there is no limit"), 1;
  if (generation(0) != 0) return 1;
  return puts("ok"), 0;
}
