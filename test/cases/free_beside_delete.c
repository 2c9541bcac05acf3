// SPDX-License-Identifier: Apache-2.0
//
// A thread frees and moves large blocks of a heap that another one deletes: each stays a block of the
// process, or is freed, and the deletion ends.
//
// run: 300
// seconds: 60
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlocks = 16, kBytes = 300 << 10 };

static void* (*heap_new)(void);
static void* (*heap_malloc)(void*, size_t);
static void (*heap_delete)(void*);
static int (*check)(const void*);
static atomic_int started, done;
static char* blocks[kBlocks];

static void* user(void* nothing) {
  for (int i = 1;; ++i) {
    while (atomic_load(&started) < i) sched_yield();
    for (int at = 0; at < kBlocks; ++at) {
      if (at % 2 == 0) {
        free(blocks[at]);
        blocks[at] = NULL;
      } else {
        char* const moved = realloc(blocks[at], kBytes + (size_t)(at % 8) * kBytes);
        if (moved != NULL) blocks[at] = moved;
      }
    }
    atomic_store(&done, i);
  }
  return nothing;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 0;
  heap_new = (void* (*)(void))dlsym(RTLD_DEFAULT, "hz_heap_new");
  heap_malloc = (void* (*)(void*, size_t))dlsym(RTLD_DEFAULT, "hz_heap_malloc");
  heap_delete = (void (*)(void*))dlsym(RTLD_DEFAULT, "hz_heap_delete");
  check = (int (*)(const void*))dlsym(RTLD_DEFAULT, "hz_check");
  if (heap_new == NULL || heap_new() == NULL) return 0;  // a line without heaps
  pthread_t thread;
  if (pthread_create(&thread, NULL, &user, NULL) != 0) return 1;
  for (int i = 1; i <= rounds; ++i) {
    void* const heap = heap_new();
    if (heap == NULL) return puts("no heap"), 1;
    for (int at = 0; at < kBlocks; ++at) {
      blocks[at] = heap_malloc(heap, kBytes);
      if (blocks[at] == NULL) return puts("no block"), 1;
      blocks[at][0] = (char)at;
    }
    atomic_store(&started, i);
    for (int turn = 0; turn < i % 64 * 40; ++turn) atomic_load(&done);
    heap_delete(heap);
    while (atomic_load(&done) < i) sched_yield();
    for (int at = 1; at < kBlocks; at += 2) {
      if (blocks[at][0] != (char)at || check(blocks[at]) != 0)
        return printf("round %d: block %d is lost\n", i, at), 1;
      free(blocks[at]);
    }
  }
  return 0;
}
