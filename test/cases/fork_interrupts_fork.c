// SPDX-License-Identifier: Apache-2.0
//
// A fork waits for a thread that has a lock, and a signal handler that forks interrupts it. The handler's
// child allocates and ends there, or returns from the handler, and the fork goes on in it: neither waits for
// a thread that the child does not have.
//
// run: HZ_STATS=1 ends
// run: HZ_STATS=1 returns
// seconds: 60
// alone
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 5, kMostTries = 200 };
static int returns;
static volatile sig_atomic_t in_fork, in_child, forks;
static atomic_int stopped, goes_on;

static void use(void) {
  for (int i = 0; i < 20; ++i) free(malloc(100 + 5000 * (size_t)i));
  free(malloc(5 << 20));
}
static void expect_success(pid_t child) {
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(1);
}

// Of the thread that has a lock, perhaps. A handler that interrupts between two tries waits as any fork does.
static void on_stop(int number) {
  atomic_store(&stopped, number);
  for (int i = 0; i < 10000 && !atomic_load(&goes_on); ++i) usleep(100);
  atomic_store(&stopped, 0);
}
static void* work(void* nothing) {
  for (;;) use();
  return nothing;
}

static void on_alarm(int number) {
  if (!in_fork || in_child) return;
  const pid_t child = fork();
  if (child != 0) {
    expect_success(child);
    ++forks;
    atomic_store(&goes_on, number);
    return;
  }
  in_child = 1;
  signal(SIGALRM, SIG_DFL);
  alarm(5);
  if (returns) return;
  use();
  _exit(0);
}

int main(int argc, char** argv) {
  returns = argc > 1 && strcmp(argv[1], "returns") == 0;
  struct sigaction action = {0};
  action.sa_flags = SA_RESTART | SA_NODEFER;
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = on_stop;
  sigaction(SIGUSR1, &action, NULL);
  pthread_t worker;
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 77;
  const struct itimerval soon = {{0, 0}, {0, 200000}}, never = {0};
  for (int i = 0; forks < kForks && i < kMostTries; ++i) {
    atomic_store(&goes_on, 0);
    pthread_kill(worker, SIGUSR1);
    while (!atomic_load(&stopped)) usleep(100);
    in_fork = 1;
    setitimer(ITIMER_REAL, &soon, NULL);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (!in_child) setitimer(ITIMER_REAL, &never, NULL);
    in_fork = 0;
    expect_success(child);
    if (in_child) {
      use();
      _exit(0);
    }
    atomic_store(&goes_on, 1);
    while (atomic_load(&stopped)) usleep(100);
  }
  return 0;
}
