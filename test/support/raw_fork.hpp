// SPDX-License-Identifier: Apache-2.0
//
// Children that no fork handler is told of. Whatever another thread was at stays half done in them; so that a
// test need not wait for the moment, a child can be made after each instruction of a call.
#pragma once

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace hz_test {

inline pid_t ForkByClone() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// 0 as a rule; -1 if the child died of a signal.
inline int ExitCodeOf(pid_t child) {
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  return ended ? WEXITSTATUS(status) : -1;
}

#if defined(__x86_64__)
struct StepsWithChildren {
  std::function<int()> in_child;
  unsigned steps = 0, failed = 0;
};
inline StepsWithChildren stepping_with_children;

inline void ForkAtStep(int) {
  StepsWithChildren& s = stepping_with_children;
  ++s.steps;
  if (s.failed != 0) return;
  const pid_t child = ForkByClone();
  if (child == 0) {
    std::signal(SIGTRAP, SIG_DFL);
    alarm(20);
    _exit(s.in_child());
  }
  if (ExitCodeOf(child) != 0) s.failed = s.steps;
}

// Runs `call`, and after each of its instructions `in_child` in a child, which is right if that is 0. The
// instruction after which a child was wrong, 0 if none was. `steps`: how many there were.
template <class Call>
unsigned ForkAfterEachInstruction(Call call, std::function<int()> in_child, unsigned& steps) {
  stepping_with_children = {.in_child = std::move(in_child)};
  const auto before = std::signal(SIGTRAP, &ForkAtStep);
  __writeeflags(__readeflags() | 0x100U);  // the trap flag
  call();
  __writeeflags(__readeflags() & ~0x100U);
  std::signal(SIGTRAP, before);
  steps = stepping_with_children.steps;
  return stepping_with_children.failed;
}
#endif

}  // namespace hz_test
