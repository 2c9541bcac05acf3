// SPDX-License-Identifier: Apache-2.0
// A process of one thread has a large block again and again, as programs that compute with arrays do, and a
// buffer that grows. Its pages go back as their return is paid for, and stay in between: a quarter of them at
// most is faulted in again.
//
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6
// prints: ok
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { kRounds = 100, kLarge = 8 << 20, kFirst = 64 << 10, kLast = 4 << 20, kPage = 4096 };

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

static void touch(char* block, size_t from, size_t to) {
  for (size_t i = from; i < to; i += kPage) block[i] = 1;
}

static void have_large(void) {
  char* const block = malloc(kLarge);
  touch(block, 0, kLarge);
  free(block);
}

static void grow(void) {
  char* block = NULL;
  for (size_t had = 0, size = kFirst; size <= kLast; had = size, size *= 2) {
    block = realloc(block, size);
    touch(block, had, size);
  }
  free(block);
}

static int again(const char* what, void (*work)(void), size_t bytes) {
  const long before = faults(), most = (long)(kRounds * bytes / kPage / 4);
  for (int i = 0; i < kRounds; ++i) work();
  const long taken = faults() - before;
  if (taken > most) printf("%s: %ld page faults, %ld may be\n", what, taken, most);
  return taken > most;
}

int main(void) {
  if (again("a large block", have_large, kLarge) + again("a buffer that grows", grow, kLast) != 0) return 1;
  puts("ok");
  return 0;
}
