// SPDX-License-Identifier: Apache-2.0
// Memory that was used for small blocks becomes memory of larger ones. Behind these no page stays resident
// that no block covers; the blocks that keep such pages are named by their size.
// run: 33000
// run: 25000
// run: 70000
// run: 4300000
// prints: ^ok
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSmall = 1000, kTotal = 24 << 20, kMost = kTotal / 25000 + 1, kGranule = 64 << 10, kPage = 4096 };

static void* small[kTotal / kSmall * 2];
static uintptr_t large[kMost];
static size_t size, count;

static int by_address(const void* one, const void* other) {
  const uintptr_t a = *(const uintptr_t*)one, b = *(const uintptr_t*)other;
  return a < b ? -1 : a > b;
}

// How many of the pages in [from, to) are resident.
static size_t resident(int pagemap, uintptr_t from, uintptr_t to) {
  size_t pages = 0;
  for (uintptr_t at = from; at < to; at += kPage) {
    uint64_t entry = 0;
    const ssize_t bytes = pread(pagemap, &entry, sizeof entry, (off_t)(at / kPage * sizeof entry));
    pages += bytes == sizeof entry && entry >> 63 != 0;
  }
  return pages;
}

// From the end of each block to the end of its granule, or to the next block.
static size_t behind_blocks(int pagemap) {
  size_t pages = 0;
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t end = (large[i] + size + kPage - 1) & ~(uintptr_t)(kPage - 1);
    const uintptr_t usable =
        (large[i] + malloc_usable_size((void*)large[i]) + kPage - 1) & ~(uintptr_t)(kPage - 1);
    uintptr_t stop = (end + kGranule - 1) & ~(uintptr_t)(kGranule - 1);
    if (i + 1 < count && large[i + 1] < stop) stop = large[i + 1] & ~(uintptr_t)(kPage - 1);
    pages += resident(pagemap, size > kTotal / 8 || usable > stop ? end : usable, stop);
  }
  return pages;
}

static void* work(void* unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof small / sizeof *small; ++i) memset(small[i] = malloc(kSmall), 1, kSmall);
  for (size_t i = 0; i < sizeof small / sizeof *small; ++i) free(small[i]);
  for (count = 0; count < kTotal / size; ++count) {
    void* const block = malloc(size);
    memset(block, 1, size);
    large[count] = (uintptr_t)block;
  }
  return NULL;
}

static void* rest(void* unused) {
  for (;;) pause();
  return unused;
}

int main(int argc, char** argv) {
  size = argc > 1 ? strtoul(argv[1], NULL, 10) : 33000;
  const int pagemap = open("/proc/self/pagemap", O_RDONLY);
  if (pagemap < 0 || sysconf(_SC_PAGESIZE) != kPage) return 77;
  pthread_t resting, working;
  pthread_create(&resting, NULL, rest, NULL);
  pthread_create(&working, NULL, work, NULL);
  pthread_join(working, NULL);
  qsort(large, count, sizeof *large, by_address);
  const size_t pages = behind_blocks(pagemap), most = kTotal / kPage / 50;
  if (pages > most)
    printf("behind %zu blocks of %zu bytes: %zu pages, at most %zu\n", count, size, pages, most);
  if (pages <= most) puts("ok");
  return pages > most;
}
