// SPDX-License-Identifier: Apache-2.0
// Overwrites the mark of every slot of a batch that leaves a thread: each is reported as E06, and the batch
// is empty. The argument says how it leaves.
// lines: hz3 hz3-fast
// run: HZ_ON_INVALID=report large
// run: HZ_ON_INVALID=report small
// run: HZ_ON_INVALID=report exit
// run: HZ_ON_INVALID=report remote
// prints: E06 write-after-free
// prints: ok
// alone
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 2000 };
static void* blocks[kBlocks];

static void spoil(void* block) { ((volatile uint64_t*)block)[1] = 0; }

static void* free_all(void* spoiled) {
  for (int i = 0; i < kBlocks; ++i) {
    free(blocks[i]);
    if (spoiled != NULL) spoil(blocks[i]);
  }
  return NULL;
}
static void* allocate_and_free(void* unused) {
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(64);
  (void)unused;
  return free_all(blocks);
}
static void in_thread(void* (*run)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, run, blocks);
  pthread_join(thread, NULL);
}

int main(int count, char** arguments) {
  const char* const way = count > 1 ? arguments[1] : "";
  if (strcmp(way, "large") == 0) {  // a bin with room for one slot
    void *first = malloc(2 << 20), *second = malloc(2 << 20);
    free(first);
    spoil(first);
    free(second);
  } else if (strcmp(way, "small") == 0) {  // a full bin
    allocate_and_free(NULL);
  } else if (strcmp(way, "exit") == 0) {  // a thread ends
    in_thread(allocate_and_free);
  } else {  // an outbox
    for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(64);
    in_thread(free_all);
  }
  for (int i = 0; i < kBlocks; ++i) memset(malloc(64), 1, 64);
  malloc_trim(0);
  puts("ok");
  return 0;
}
