/* SPDX-License-Identifier: Apache-2.0
 *
 * A process to look into: its threads leave caches, live blocks and blocks that others free; then it is at
 * rest, or goes on (`busy`), or has a child that is at rest, too (`fork`), or closes all files but its
 * standard ones and takes another folder for its root (`shut`), or its first thread has ended (`left`), or it
 * freed a block twice (`twice`), or 19 of 20 blocks, and lets their memory stay (`survivors`). For each line
 * on its standard input it writes what hz_stats says, after a trim if the line begins with `t`; it ends with
 * its input. Started by the tests of this folder.
 */
#include <hakozuna/hakozuna.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the library that serves it, which is not linked. */
#pragma weak hz_stats
#pragma GCC diagnostic ignored "-Wunused-result"

enum { kThreads = 4, kBlocks = 3000 };
static void* passed[kThreads][kBlocks];
static pthread_barrier_t all;
static volatile int stop;
static void* volatile kept; /* or a compiler leaves out what nobody uses */

static void* hold(void* number) {
  void** own = passed[(long)number];
  for (int i = 0; i < kBlocks; ++i) memset(own[i] = malloc((size_t)(16 + i % 1500)), 1, 16);
  pthread_barrier_wait(&all);
  void** others = passed[((long)number + 1) % kThreads];
  for (int i = 0; i < kBlocks; i += 2) free(others[i]);
  memset(malloc(30000), 1, 30000);
  pthread_barrier_wait(&all);
  pause();
  return NULL;
}

static void* churn(void* unused) {
  (void)unused;
  void* blocks[200] = {0};
  for (unsigned i = 0; i < 20000 && !stop; ++i) {
    free(blocks[i % 200]);
    blocks[i % 200] = malloc(i * 37 % 5000);
  }
  for (int i = 0; i < 200; ++i) free(blocks[i]);
  return NULL;
}

static void* busy(void* unused) {
  while (!stop) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, churn, unused);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  }
  return NULL;
}

static void tell(void) {
  hz_stats_t s;
  hz_stats(&s, sizeof s);
  const uint64_t* value = (const uint64_t*)&s;
  char line[1024];
  int end = snprintf(line, sizeof line, "%d", (int)getpid());
  for (size_t i = 0; i < sizeof s / sizeof *value; ++i)
    end += snprintf(line + end, sizeof line - (size_t)end, " %llu", (unsigned long long)value[i]);
  line[end++] = '\n';
  write(1, line, (size_t)end);
}

static void* answer(void* unused) {
  for (char one; read(0, &one, 1) == 1;) {
    if (one == 't') malloc_trim(0);
    if (one == '\n') tell();
  }
  return unused;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "rest";
  pthread_t thread;
  if (strcmp(mode, "left") == 0) {
    pthread_create(&thread, NULL, answer, NULL);
    pthread_exit(NULL);
  } else if (strcmp(mode, "twice") == 0) {
    void* volatile first = malloc(64), * volatile second = malloc(64);
    free(first);
    free(second);
    free(first);
  } else if (strcmp(mode, "survivors") == 0) {
    enum { kMany = 40000 };
    static void* blocks[kMany];
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    for (int i = 0; i < kMany; ++i) memset(blocks[i] = malloc(512), 1, 512);
    for (int i = 0; i < kMany; ++i)
      if (i % 20 != 0) free(blocks[i]);
  } else if (strcmp(mode, "busy") == 0) {
    pthread_create(&thread, NULL, busy, NULL);
  } else {
    pthread_barrier_init(&all, NULL, kThreads + 1);
    for (long i = 0; i < kThreads; ++i) pthread_create(&thread, NULL, hold, (void*)i);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    memset(malloc((size_t)10 << 20), 1, (size_t)10 << 20);
    if (strcmp(mode, "fork") == 0 && fork() != 0) return wait(NULL) < 0;
    for (int i = 0; i < 1000; ++i) kept = malloc(333);
    if (strcmp(mode, "shut") == 0) {
      for (int file = 3; file < 1024; ++file) close(file);
      if (chdir("/tmp") != 0 || (geteuid() == 0 && chroot("/tmp") != 0)) return 1;
    }
  }
  answer(NULL);
  stop = 1;
  return 0;
}
