// SPDX-License-Identifier: Apache-2.0
//
// A process with one thread forks 200 times. Each page that the heap writes to around a fork is copied, in
// the parent as well: with the C library's heap the parent has two page faults for each fork. Shells fork for
// each substitution of a command.
//
// prints: few faults
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 200, kMost = 5 };

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}
static void fork_once(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
}

int main(void) {
  for (int i = 0; i < 1000; ++i) free(malloc(16 + i % 40 * 16));
  fork_once();
  const long before = faults();
  for (int i = 0; i < kForks; ++i) fork_once();
  const long each = (faults() - before) / kForks;
  if (each > kMost) return printf("%ld faults for each fork\n", each), 1;
  puts("few faults");
  return 0;
}
