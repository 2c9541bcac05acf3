// SPDX-License-Identifier: Apache-2.0
// What the library writes may fail with a signal that ends a program by default: SIGPIPE where nobody reads
// stderr, SIGXFSZ where a file may not grow. A program runs and ends as if nothing had been written.
// alone
// prints: ok
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed;

static int run(const char* self, const char* what, const char* a, const char* b, const char* c) {
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], 2) != 2) _exit(3);
    close(ends[0]);
    close(ends[1]);
    const char* settings[] = {a, b, c};
    for (int i = 0; i < 3; ++i)
      if (settings[i] != NULL) putenv((char*)settings[i]);
    if (strstr(what, "file") != NULL) {
      const struct rlimit none = {0, 0};
      setrlimit(RLIMIT_FSIZE, &none);
    }
    execl(self, self, what, (char*)NULL);
    _exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) printf("wrong: %s: status %d\n", what, status), failed = 1;
  return status;
}

static int work(const char* what) {
  signal(SIGPIPE, SIG_DFL);
  if (strcmp(what, "report beside a signal of the program's") == 0) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGPIPE);
  }
  void* volatile block = malloc(100);
  free(block);
  if (strstr(what, "report") != NULL) {
    void* volatile other = malloc(100);
    free(block == other ? (void*)((char*)block + 8) : block);
    free(other);
  }
  sigset_t pending;
  if (strcmp(what, "report beside a signal of the program's") == 0)
    return sigpending(&pending) != 0 || !sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ);
  return sigpending(&pending) != 0 || sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ);
}

int main(int argc, char** argv) {
  if (argc == 2) return work(argv[1]);
  char path[100], stats[120], heap[120];
  snprintf(path, sizeof path, "/tmp/hz-unread-%d", (int)getpid());
  snprintf(stats, sizeof stats, "HZ_STATS_FILE=%s", path);
  snprintf(heap, sizeof heap, "HZ_PROFILE_HEAP_FILE=%s", path);
  run(argv[0], "statistics", "HZ_STATS=1", NULL, NULL);
  run(argv[0], "warning", "HZ_RETAIN=xx", "HZ_STATSS=1", NULL);
  run(argv[0], "report", "HZ_ON_INVALID=report", NULL, NULL);
  run(argv[0], "report beside a signal of the program's", "HZ_ON_INVALID=report", NULL, NULL);
  run(argv[0], "file of statistics", "HZ_STATS=1", stats, NULL);
  run(argv[0], "file of a profile", "HZ_PROFILE_HEAP=1", heap, NULL);
  unlink(path);
  if (!failed) puts("ok");
  return failed;
}
