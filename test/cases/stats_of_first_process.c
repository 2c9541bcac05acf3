// SPDX-License-Identifier: Apache-2.0
//
// The first process of a namespace of process numbers is not ended by SIGTERM. It writes one line of
// statistics, when it exits, however many of these signals it gets.
// run: HZ_STATS=1
// prints: 1 line, status 0
// alone
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Both numbers of its own: as any user may have them, and as root may where users have none.
static int enters_a_namespace(void) {
  return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    if (getpid() != 1) return 1;
    free(malloc(100));
    for (int i = 0; i < 3; ++i) kill(getpid(), SIGTERM);
    return 0;
  }
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (!enters_a_namespace()) return 77;
  const pid_t first = fork();
  if (first == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "first", "first", (char*)NULL);
    _exit(1);
  }
  close(ends[1]);
  char said[16384];
  size_t length = 0;
  for (ssize_t n = 1; n > 0 && length<sizeof said - 1; length += n> 0 ? (size_t)n : 0)
    n = read(ends[0], said + length, sizeof said - 1 - length);
  said[length] = 0;
  int status = 1, lines = 0;
  waitpid(first, &status, 0);
  for (const char* at = said; (at = strstr(at, "hz: stats ")) != NULL; ++at) ++lines;
  printf("%d line%s, status %d\n", lines, lines == 1 ? "" : "s", status);
  return status != 0;
}
