// SPDX-License-Identifier: Apache-2.0
//
// A thread resizes a block whose heap another one deletes, and the next heap is begun at once: the block
// stays the process's, and is not freed with that heap.
//
// run: 4000
// seconds: 60
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static void* (*heap_new)(void);
static void* (*heap_malloc)(void*, size_t);
static void (*heap_delete)(void*);
static void (*heap_destroy)(void*);
static int (*check)(const void*);
static atomic_int started, stopped, done;
static void* volatile block;

// Moves the calling thread to one of the processors that the process may use, the first or the last.
static void move_to(int last) {
  static cpu_set_t all;
  if (!last) sched_getaffinity(0, sizeof all, &all);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && (last || CPU_COUNT(&one) == 0); ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

static void* resizer(void* nothing) {
  move_to(1);
  for (int i = 1;; ++i) {
    while (atomic_load(&started) < i) sched_yield();
    for (size_t size = 9000; atomic_load(&stopped) < i; size = 9100 - size) {
      void* const moved = realloc(block, size);
      if (moved != NULL) block = moved;
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
  heap_destroy = (void (*)(void*))dlsym(RTLD_DEFAULT, "hz_heap_destroy");
  check = (int (*)(const void*))dlsym(RTLD_DEFAULT, "hz_check");
  void* const first = heap_new == NULL ? NULL : heap_new();
  if (first == NULL) return 0;  // a line without heaps
  move_to(0);                   // on one processor the two would never meet
  pthread_t thread;
  pthread_create(&thread, NULL, resizer, NULL);
  unsigned random = 1;
  for (int i = 1; i <= rounds; ++i) {
    void* const heap = heap_new();
    block = heap_malloc(heap, 100);
    heap_malloc(heap, 20000);
    atomic_store(&started, i);
    random = random * 1664525 + 1013904223;
    for (volatile unsigned k = 0; k < (random >> 20) % 600; ++k) continue;
    heap_delete(heap);
    void* const next = heap_new();
    for (volatile unsigned k = 0; k < 300; ++k) continue;
    atomic_store(&stopped, i);
    while (atomic_load(&done) < i) sched_yield();
    heap_destroy(next);
    if (check(block) != 0) {
      fprintf(stderr, "round %d: a live block went with another heap\n", i);
      _Exit(1);
    }
    free(block);
  }
  _Exit(0);
}
