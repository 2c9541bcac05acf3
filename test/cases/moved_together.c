// SPDX-License-Identifier: Apache-2.0
// Of many blocks one in ten lives on. A program that moves those which hz_defrag_hint names has about as much
// memory soon as they need, and a pass comes in which hardly any is named: a thread that changes processors
// may take up one or the other again. In hz7 none ever is.
// run:
// run: HZ_PROFILE_HEAP=1 HZ_PROFILE_HEAP_FILE=/dev/null HZ_GUARD_SAMPLE=50 HZ_POLICY=learn
// run: HZ_BACKGROUND=0
// prints: ok:
// seconds: 60
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBlocks = 60000, kKept = 10, kLeast = 16, kMost = 1200, kPasses = 20, kFew = kBlocks / kKept / 100 };

static unsigned char* blocks[kBlocks];
static unsigned short sizes[kBlocks];
static unsigned state = 1;

static unsigned below(unsigned n) {
  state = state * 1664525 + 1013904223;
  return (unsigned)(((unsigned long)state * n) >> 32);
}
static size_t resident(void) {
  size_t all = 0, pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%zu %zu", &all, &pages) != 2) exit(3);
  fclose(file);
  return pages * (size_t)getpagesize();
}
static void* sleep_on(void* none) {
  for (;;) pause();
  return none;
}

// How many were moved.
static unsigned pass(int (*hint)(const void*)) {
  unsigned moved = 0;
  for (unsigned i = 0; i < kBlocks; ++i) {
    if (blocks[i] == NULL || hint(blocks[i]) == 0) continue;
    unsigned char* const to = malloc(sizes[i]);
    if (to == NULL) exit(4);
    memcpy(to, blocks[i], sizes[i]);
    free(blocks[i]);
    blocks[i] = to;
    ++moved;
  }
  return moved;
}

int main(void) {
  int (*const hint)(const void*) = (int (*)(const void*))dlsym(RTLD_DEFAULT, "hz_defrag_hint");
  const char* (*const line)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "hz_line");
  if (hint == NULL || line == NULL) return puts("ok: no library of ours"), 0;
  const int moves = strcmp(line(), "hz7") != 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, &sleep_on, NULL) != 0) return 5;
  memset(blocks, 1, sizeof blocks);
  memset(sizes, 1, sizeof sizes);
  const size_t before = resident();
  size_t live = 0;
  for (unsigned i = 0; i < kBlocks; ++i) {
    sizes[i] = (unsigned short)(kLeast + below(kMost - kLeast));
    blocks[i] = malloc(sizes[i]);
    if (blocks[i] == NULL) return 4;
    memset(blocks[i], (int)(i % 251), sizes[i]);
  }
  for (unsigned i = 0; i < kBlocks; ++i) {
    if (below(kKept) == 0) {
      live += malloc_usable_size(blocks[i]);
      continue;
    }
    free(blocks[i]);
    blocks[i] = NULL;
  }
  unsigned passes = 0, moved = 0;
  for (unsigned now = kFew + 1; now > kFew && passes < kPasses; ++passes) moved += now = pass(hint);
  if (passes == kPasses) return printf("blocks are named for ever\n"), 1;
  if ((moved != 0) != moves) return printf("%u moved\n", moved), 1;
  for (unsigned i = 0; i < kBlocks; ++i)
    for (unsigned at = 0; blocks[i] != NULL && at < sizes[i]; ++at)
      if (blocks[i][at] != i % 251) return printf("block %u has lost what it had\n", i), 1;
  const size_t most = before + live / 2 * 3 + (8 << 20);
  for (int tenths = 0; moves && resident() > most; ++tenths) {
    if (tenths == 100) return printf("%zu bytes of %zu live ones\n", resident() - before, live), 1;
    usleep(100000);
  }
  void* const large = malloc(200000);
  if (hint(NULL) != 0 || hint(large) != 0) return puts("what has no slot of a span is named"), 1;
  free(large);
  printf("ok: %u moved in %u passes\n", moved, passes);
  return 0;
}
