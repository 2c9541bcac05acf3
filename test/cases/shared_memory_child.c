// SPDX-License-Identifier: Apache-2.0
// A child that shares its parent's memory (vfork, or clone with CLONE_VM) allocates and frees, then exits. It
// starts no thread, so the parent's wait ends; and the parent's memory comes back afterwards.
//
// prints: ok
// seconds: 10
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 12000, kSize = 1000, kAfterwards = 64 * 1024, kFewMiB = 16, kPatience = 40 };

static void* blocks[kAfterwards];
static volatile int exits;

static void fill(int count, int size) {
  for (int i = 0; i < count; ++i) {
    blocks[i] = malloc(size);
    memset(blocks[i], i, size);
  }
}
static void drain(int count) {
  for (int i = 0; i < count; ++i) free(blocks[i]);
}

// Does not allocate.
static int threads(void) {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) == 0 ? (int)tasks.st_nlink - 2 : -1;
}

static int run_child(void* unused) {
  (void)unused;
  fill(kBlocks, kSize);
  drain(kBlocks);
  fill(kBlocks, kSize);
  drain(kBlocks);
  ++exits;
  return threads() == 1 ? 0 : 1;
}

static void expect_end(pid_t child) {
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) {
    printf("the child's status is %x\n", status);
    exit(1);
  }
}

static void* nothing(void* unused) { return unused; }

static long resident_mib(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE) >> 20;
}

int main(void) {
  static char stack[1 << 17];
  pthread_t thread;
  pthread_create(&thread, NULL, nothing, NULL);
  pthread_join(thread, NULL);
  char* const top = stack + sizeof stack - 64;
  expect_end(clone(run_child, top, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
  const pid_t child = vfork();
  if (child == 0) _exit(run_child(NULL));
  expect_end(child);
  const long before = resident_mib();
  fill(kAfterwards, kSize);
  drain(kAfterwards);
  for (int i = 0; resident_mib() > before + kFewMiB; ++i) {
    if (i == kPatience) {
      printf("%ld MiB stay resident, %ld before\n", resident_mib(), before);
      return 1;
    }
    usleep(50000);
  }
  puts(exits == 2 ? "ok" : "the children did not share the memory");
  return 0;
}
