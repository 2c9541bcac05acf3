// SPDX-License-Identifier: Apache-2.0
// A plugin with our archive inside is closed while threads that called it go on, and loaded again: its hooks
// at a thread's end and at a fork are called later all the same.
// prints: ok
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 4, kRounds = 3 };

static int (*use)(void);
static pthread_barrier_t barrier;

static void* run(void* unused) {
  (void)unused;
  use();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pthread_barrier_init(&barrier, NULL, kThreads + 1);
  for (int round = 0; round < kRounds; ++round) {
    void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) return puts(dlerror()), 1;
    use = (int (*)(void))dlsym(plugin, "use");
    pthread_t threads[kThreads];
    for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, run, NULL);
    pthread_barrier_wait(&barrier);
    dlclose(plugin);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return puts("the child fails"), 1;
  }
  puts("ok");
  return 0;
}
