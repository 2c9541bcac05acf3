// SPDX-License-Identifier: Apache-2.0
//
// A child that was made without the fork handlers, while another thread had a lock, forks before it
// allocates: it does not wait for that thread.
//
// run: HZ_STATS=1
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6 hz8 secure
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 10 };
static atomic_int stopped, goes_on;

static void use(void) {
  for (int i = 0; i < 20; ++i) free(malloc(100 + 5000 * (size_t)i));
  free(malloc(5 << 20));
}
static void expect_success(pid_t child) {
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(1);
}

// Of the thread that has a lock, most often.
static void on_stop(int number) {
  atomic_store(&stopped, number);
  for (int i = 0; i < 10000 && !atomic_load(&goes_on); ++i) usleep(100);
  atomic_store(&stopped, 0);
}
static void* work(void* nothing) {
  for (;;) use();
  return nothing;
}

static void fork_again(void) {
  alarm(5);
  const pid_t child = fork();
  if (child == 0) {
    use();
    _exit(0);
  }
  expect_success(child);
  _exit(0);
}

int main(void) {
  pid_t (*const unhooked_fork)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork");
  if (unhooked_fork == NULL) return 77;
  signal(SIGUSR1, on_stop);
  pthread_t worker;
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 77;
  for (int i = 0; i < kForks; ++i) {
    atomic_store(&goes_on, 0);
    pthread_kill(worker, SIGUSR1);
    while (!atomic_load(&stopped)) usleep(100);
    const pid_t child = unhooked_fork();
    if (child == 0) fork_again();
    expect_success(child);
    atomic_store(&goes_on, 1);
    while (atomic_load(&stopped)) usleep(100);
  }
  return 0;
}
