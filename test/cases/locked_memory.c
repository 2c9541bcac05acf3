// SPDX-License-Identifier: Apache-2.0
// A program locks its memory with mlockall. What it frees goes back all the same, and calloc's memory is
// zero; and a user who may lock 5 MiB can do so, so what the heap maps at the start is small.
//
// run: small
// run: current
// run: future
// prints: ok
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
  kBlocks = 96,
  kSize = 1 << 20,
  kSmallBlocks = 32768,
  kSmallSize = 1000,
  kMostMiB = 32,
  kPatience = 60
};
enum { kNobody = 65534, kMayLock = 5 << 20 };

static long resident_mib(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static void* nothing(void* unused) { return unused; }

static int lock_as_plain_user(void) {
  const struct rlimit few = {kMayLock, kMayLock};
  if (setrlimit(RLIMIT_MEMLOCK, &few) != 0) return perror("setrlimit"), 1;
  if (getuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return perror("setresuid"), 1;
  if (mlockall(MCL_CURRENT) != 0) return perror("mlockall"), 1;
  return puts("ok"), 0;
}

static int burst(int count, int size) {
  static char* blocks[kSmallBlocks];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] = round == 0 ? malloc(size) : calloc(1, size);
      if (blocks[i] == NULL) return puts("no memory"), 1;
      for (int at = 0; round != 0 && at < size; at += 64)
        if (blocks[i][at] != 0) return puts("calloc's memory is not zero"), 1;
      memset(blocks[i], 7, size);
    }
    for (int i = 0; i < count; ++i) free(blocks[i]);
  }
  for (int i = 0; resident_mib() > kMostMiB; ++i) {
    if (i == kPatience) return printf("%ld MiB stay resident\n", resident_mib()), 1;
    usleep(50000);
    malloc_trim(0);
  }
  return 0;
}

int main(int count, char** arguments) {
  free(malloc(100));
  if (count > 1 && strcmp(arguments[1], "small") == 0) return lock_as_plain_user();
  pthread_t thread;
  pthread_create(&thread, NULL, nothing, NULL);
  pthread_join(thread, NULL);
  const int future = count > 1 && strcmp(arguments[1], "future") == 0;
  if (mlockall(future ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT) != 0) return perror("mlockall"), 77;
  if (burst(kBlocks, kSize) != 0 || burst(kSmallBlocks, kSmallSize) != 0) return 1;
  return puts("ok"), 0;
}
