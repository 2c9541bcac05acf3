// SPDX-License-Identifier: Apache-2.0
//
// A signal handler that calls exit() interrupts the heap, wherever it is: the process ends, and does not wait
// for a lock that its own thread has.
//
// run: HZ_STATS=1
// run: HZ_PROFILE_HEAP=1 HZ_PROFILE_HEAP_FILE=/dev/null
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kExits = 30 };

static void on_signal(int number) { exit(number == SIGUSR1 ? 0 : 1); }

static void work(int ready) {
  signal(SIGUSR1, on_signal);
  if (write(ready, "", 1) != 1) _exit(3);
  for (;;) {
    free(malloc(100));
    free(malloc(300000));
  }
}

int main(void) {
  for (int i = 0; i < kExits; ++i) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0) return 77;
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      work(ends[1]);
    }
    if (child < 0 || read(ends[0], &byte, 1) != 1) return 1;
    usleep(1000 + 37 * (useconds_t)i);
    kill(child, SIGUSR1);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 2;
    close(ends[0]);
    close(ends[1]);
  }
  return 0;
}
