// SPDX-License-Identifier: Apache-2.0
// Under a limit of addresses the heap unmaps pages that no block needs. If the program then maps memory of
// its own there, the heap allocates elsewhere once the limit is gone, and every block keeps its content.
// run:
// run: HZ_BACKGROUND=0
// alone
// prints: ok
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { kBytes = 140000, kMost = 4000, kOthers = 40, kPage = 4096 };
static char* blocks[kMost];
static char* others[kOthers];
static char* again[kMost];

int main(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return 77;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = (rlim_t)320 << 20;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
  int count = 0;
  while (count < kMost && (blocks[count] = malloc(kBytes)) != NULL)
    memset(blocks[count], count + 1, kBytes), ++count;
  for (int i = 0; i < count; ++i)
    if (i % 16 < 10) free(blocks[i]);
  malloc_trim(0);
  for (int i = 0; i < kOthers; ++i) others[i] = malloc((size_t)5 << 20);
  limit.rlim_cur = before;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
  // Maps a page wherever nothing is at the place of a freed block.
  for (int i = 0; i < count; ++i)
    for (size_t at = 0; i % 16 < 10 && at < kBytes; at += kPage)
      mmap((char*)((size_t)blocks[i] / kPage * kPage) + at, kPage, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  int missing = 0;
  for (int i = 0; i < count; ++i) {
    again[i] = malloc(kBytes);
    if (again[i] == NULL) ++missing;
    if (again[i] != NULL) memset(again[i], i, kBytes);
  }
  if (missing != 0) return printf("%d of %d blocks missing\n", missing, count), 1;
  for (int i = 0; i < count; ++i) {
    if (i % 16 < 10) continue;
    if (blocks[i][0] != (char)(i + 1) || blocks[i][kBytes - 1] != (char)(i + 1)) return puts("content"), 1;
    free(blocks[i]);
  }
  for (int i = 0; i < count; ++i) free(again[i]);
  for (int i = 0; i < kOthers; ++i) free(others[i]);
  malloc_trim(0);
  return puts("ok"), 0;
}
