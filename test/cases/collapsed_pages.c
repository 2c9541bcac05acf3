// SPDX-License-Identifier: Apache-2.0
// Of a program's blocks one in twenty lives on, at random. Then the kernel makes huge pages of whatever it
// may (as khugepaged does by and by, where the system gives huge pages to all programs). What was given back
// stays away, and most of what is written again may be huge.
//
// run: HZ_THP=always
// lines: hakozuna hz4 hz5 hz6 hz8
// prints: ok
// alone
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif
enum { kBlocks = 60000, kSize = 2000, kOneIn = 20, kSkipped = 77 };
static const uintptr_t kHugePage = 2 << 20;

static char* blocks[kBlocks];

static long resident_kib(void) {
  long resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &resident) != 1) exit(1);
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// Of each huge page in which a block lay; how many are huge now.
static int collapse(uintptr_t from, uintptr_t to) {
  int huge = 0;
  for (uintptr_t at = from & ~(kHugePage - 1); at < to; at += kHugePage)
    huge += madvise((void*)at, kHugePage, MADV_COLLAPSE) == 0;
  return huge;
}

int main(void) {
  uintptr_t from = UINTPTR_MAX, to = 0;
  for (int i = 0; i < kBlocks; ++i) {
    memset(blocks[i] = malloc(kSize), 1, kSize);
    const uintptr_t at = (uintptr_t)blocks[i];
    from = at < from ? at : from;
    to = at > to ? at : to;
  }
  const int all = collapse(from, to);
  if (all == 0) return puts("this kernel collapses nothing"), kSkipped;
  unsigned random = 7;
  for (int i = 0; i < kBlocks; ++i) {
    random = random * 1103515245 + 12345;
    if ((random >> 16) % kOneIn != 0) free(blocks[i]), blocks[i] = NULL;
  }
  const long before = resident_kib();
  collapse(from, to);
  const long more = resident_kib() - before;
  // Neighbours of the heap's may be huge by then, and what is dirty.
  if (more > 10 * 1024) return printf("%ld KiB came back, to %ld\n", more, before), 1;
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = malloc(kSize), 1, kSize);
  const int again = collapse(from, to);
  if (again < all / 2) return printf("%d huge pages of %d may be huge again\n", again, all), 1;
  return puts("ok"), 0;
}
