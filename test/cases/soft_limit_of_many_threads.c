// SPDX-License-Identifier: Apache-2.0
// Past the soft limit what idle threads cache comes back: 300 threads that have freed all their blocks kept
// 57 MiB, whatever the limit was.
// run: HZ_LIMIT_SOFT=16M
// lines: hakozuna hz4 hz5 hz6 hz8
// alone
// prints: ok
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 300, kBlocks = 400 };
static pthread_barrier_t all;

static void* work(void* number) {
  void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i)
    memset(blocks[i] = malloc((size_t)(1 + (i * 37 + (long)number) % 500)), 1, 1);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  pthread_barrier_wait(&all);
  return NULL;
}
static long peak_kib(void) {
  char line[256];
  long kib = 0;
  FILE* const file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL) sscanf(line, "VmHWM: %ld", &kib);
  fclose(file);
  return kib;
}

int main(void) {
  static pthread_t threads[kThreads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  pthread_barrier_init(&all, NULL, kThreads);
  for (long i = 0; i < kThreads; ++i)
    if (pthread_create(&threads[i], &attributes, work, (void*)i) != 0) return 77;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  const long kib = peak_kib();
  printf(kib < 42000 ? "ok\n" : "wrong: %ld KiB\n", kib);
  return kib >= 42000;
}
