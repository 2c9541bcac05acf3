// SPDX-License-Identifier: Apache-2.0
// A report's stack is walked in a process of its own. The program does not see it: no SIGCHLD, and no child
// that a wait for any of its children finds.
// run: HZ_ON_INVALID=report
// lines: hakozuna hz3 hz4 hz7 hz8 secure
// alone
// prints: ok
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals, found, ended;

static void count(int number) {
  (void)number;
  ++signals;
}
static void* wait_for_any(void* unused) {
  (void)unused;
  while (!ended) {
    if (waitpid(-1, NULL, 0) > 0) found = 1;
    usleep(100);
  }
  return NULL;
}

int main(void) {
  signal(SIGCHLD, count);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_any, NULL);
  for (int i = 0; i < 4; ++i) {
    void* volatile block = malloc(1000);
    free((char*)block + 16);
    free(block);
  }
  ended = 1;
  pthread_join(thread, NULL);
  printf(signals == 0 && !found ? "ok\n" : "wrong: %d signals, a child %d\n", (int)signals, (int)found);
  return signals != 0 || found;
}
