// SPDX-License-Identifier: Apache-2.0
//
// A signal handler that forks interrupts the heap, wherever it is: neither the process nor the child hangs.
// The child allocates, frees and ends. Each argument is what the program is at meanwhile; a line without that
// does nothing.
//
// run: blocks sizes heaps
// run: mallinfo2 malloc_stats hz_stats
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 20 };
static volatile int forks;
static void* huge;
static void* (*heap_new)(void);
static void (*heap_destroy)(void*);
static int (*stats)(void*, size_t);

static void often(int microseconds) {
  const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void on_signal(int number) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    for (int i = 0; i < 20; ++i) free(malloc(100 + 5000 * (size_t)i));
    _exit(0);
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(number);
  if (++forks == kForks) often(0);  // or nothing but this handler might run
}

static void blocks(void) {
  void* block = malloc(100);
  free(realloc(block, 20000));
}
static void sizes(void) {
  if (malloc_usable_size(huge) == 0) _exit(2);
}
static void heaps(void) {
  if (heap_new == NULL) return;
  void* heap = heap_new();
  if (heap == NULL) return;  // ENOSYS
  heap_destroy(heap);
}
static void of_mallinfo2(void) { mallinfo2(); }
static void of_hz_stats(void) {
  char room[4096];
  if (stats != NULL) stats(room, sizeof room);
}

int main(int argc, char** argv) {
  heap_new = (void* (*)(void))dlsym(RTLD_DEFAULT, "hz_heap_new");
  heap_destroy = (void (*)(void*))dlsym(RTLD_DEFAULT, "hz_heap_destroy");
  stats = (int (*)(void*, size_t))dlsym(RTLD_DEFAULT, "hz_stats");
  huge = malloc(8 << 20);
  static const struct {
    const char* name;
    void (*work)(void);
  } all[] = {{"blocks", blocks},
             {"sizes", sizes},
             {"heaps", heaps},
             {"mallinfo2", of_mallinfo2},
             {"malloc_stats", malloc_stats},
             {"hz_stats", of_hz_stats}};
  if (freopen("/dev/null", "w", stderr) == NULL) return 3;
  struct sigaction action = {0};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  for (int i = 1; i < argc; ++i) {
    void (*work)(void) = NULL;
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k)
      if (strcmp(all[k].name, argv[i]) == 0) work = all[k].work;
    if (work == NULL) return 4;
    forks = 0;
    often(499);
    while (forks < kForks) work();
  }
  return 0;
}
