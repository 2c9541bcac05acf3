// SPDX-License-Identifier: Apache-2.0
// A process of one thread frees three of four blocks, at random, and works on with few others. The pages on
// which no block lies go back within seconds.
//
// lines: hakozuna hz4 hz5 hz6 hz8
// prints: ok
// alone
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBlocks = 50000, kSize = 2000, kFew = 2000, kFewSize = 100, kPage = 4096, kMostMiB = 8, kTries = 150 };

static char* blocks[kBlocks];
static uintptr_t pages[2 * kBlocks];

static long resident_kib(void) {
  long resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &resident) != 1) exit(1);
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int order(const void* one, const void* other) {
  const uintptr_t a = *(const uintptr_t*)one, b = *(const uintptr_t*)other;
  return (a > b) - (a < b);
}

// On which blocks lie that live.
static long live_kib(void) {
  size_t count = 0, distinct = 0;
  for (int i = 0; i < kBlocks; ++i) {
    if (blocks[i] == NULL) continue;
    pages[count++] = (uintptr_t)blocks[i] / kPage;
    pages[count++] = ((uintptr_t)blocks[i] + kSize - 1) / kPage;
  }
  qsort(pages, count, sizeof *pages, order);
  for (size_t i = 0; i < count; ++i) distinct += i == 0 || pages[i] != pages[i - 1];
  return (long)(distinct * kPage / 1024);
}

static void work(void) {
  static void* few[kFew];
  for (int i = 0; i < kFew; ++i) few[i] = malloc(kFewSize);
  for (int i = 0; i < kFew; ++i) free(few[i]);
}

int main(void) {
  memset(pages, 1, sizeof pages);
  const long before = resident_kib();
  unsigned random = 7;
  for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = malloc(kSize), 1, kSize);
  for (int i = 0; i < kBlocks; ++i) {
    random = random * 1103515245 + 12345;
    if ((random >> 16 & 3) != 0) free(blocks[i]), blocks[i] = NULL;
  }
  const long bound = live_kib() / 10 * 11 + kMostMiB * 1024;
  long left = 0;
  for (int i = 0; i < kTries; ++i) {
    work();
    usleep(20000);
    if ((left = resident_kib() - before) <= bound) return puts("ok"), 0;
  }
  return printf("%ld KiB stay resident, %ld may\n", left, bound), 1;
}
