/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole life of blocks, N at once: all are allocated, and then all are freed, in each way that lives.txt
 * has a column for. Run by golden.sh under callgrind, which writes a file after each call of a function whose
 * name begins with lives_; those are in the order of the columns. Each way but "again" meets its sizes for
 * the first time. The memory of the ways before it is free by then. */
#include <stdio.h>
#include <stdlib.h>

enum { kMost = 1 << 16 };
static void* blocks[kMost];
static unsigned order[kMost];
static unsigned long count;
static unsigned state = 1;

static unsigned below(unsigned n) {
  state = state * 1664525 + 1013904223;
  return (unsigned)(((unsigned long)state * n) >> 32);
}
static void shuffle(void) {
  for (unsigned i = 0; i < count; ++i) order[i] = i;
  for (unsigned i = (unsigned)count; i > 1; --i) {
    const unsigned j = below(i), kept = order[j];
    order[j] = order[i - 1];
    order[i - 1] = kept;
  }
}

static void fill(size_t least, size_t most) {
  for (unsigned i = 0; i < count; ++i) {
    blocks[i] = malloc(least + below((unsigned)(most - least + 1)));
    if (blocks[i] == NULL) exit(4);
  }
}
static void drain(void) {
  for (unsigned i = 0; i < count; ++i) free(blocks[order[i]]);
}

#define LIVES(name, least, most)                             \
  __attribute__((noinline)) static void lives_##name(void) { \
    fill(least, most);                                       \
    drain();                                                 \
  }
LIVES(16, 16, 16)
LIVES(64, 64, 64)
LIVES(256, 256, 256)
LIVES(1k, 1024, 1024)
LIVES(4k, 4096, 4096)
LIVES(16k, 16384, 16384)
LIVES(48k, 49152, 49152)
LIVES(mixed, 16, 8192)
LIVES(again, 16, 8192)

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  count = strtoul(argv[1], NULL, 10);
  if (count == 0 || count > kMost) return 3;
  shuffle();
  void (*const all[])(void) = {lives_16,  lives_64,  lives_256,   lives_1k,   lives_4k,
                               lives_16k, lives_48k, lives_mixed, lives_again};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) all[i]();
  return 0;
}
