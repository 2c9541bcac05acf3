// SPDX-License-Identifier: Apache-2.0
//
// The child of a fork, for tests of what it may do. A child that hangs is ended by SIGALRM.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace hz_test {

inline constexpr bool kForks = true;

// What `work` answers in a child, which ends with that; -1 if there was none, minus its number if a signal
// ended it.
template <class Work>
int InAFork(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(work());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace hz_test
