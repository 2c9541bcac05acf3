// SPDX-License-Identifier: Apache-2.0
//
// Two threads share a heap and the process's blocks, and each is interrupted by a handler that forks: neither
// waits for what the other one has. The children allocate from both.
//
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 60 };
static void* (*heap_malloc)(void*, size_t);
static void* heap;
static atomic_int forks, stopped;

static void use(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    free(malloc(300000));
    free(malloc(100));
    if (heap != NULL) free(heap_malloc(heap, 100));
  }
}

static void on_signal(int signal) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    use(10);
    _exit(0);
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(signal);
  atomic_fetch_add(&forks, 1);
}

static void* work(void* nothing) {
  while (!atomic_load(&stopped)) use(100);
  return nothing;
}

int main(void) {
  void* (*heap_new)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "hz_heap_new");
  heap_malloc = (void* (*)(void*, size_t))dlsym(RTLD_DEFAULT, "hz_heap_malloc");
  if (heap_new != NULL) heap = heap_new();
  struct sigaction action = {0};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, NULL);
  while (atomic_load(&forks) < kForks) {
    for (int i = 0; i < 2; ++i) pthread_kill(threads[i], SIGUSR1);
    usleep(700);
  }
  atomic_store(&stopped, 1);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return 0;
}
