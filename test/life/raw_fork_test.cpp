// SPDX-License-Identifier: Apache-2.0
//
// A child that no fork handler is told of, by clone(2) or _Fork(3), of a process that never had a thread: nobody but
// its one thread can hold a lock of the heap, so the child's heap works, whatever the parent did before.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "life/scene.hpp"
#include "returns/tasks.hpp"
#include "support/heap_api.hpp"

namespace hz_test {
namespace {

constexpr unsigned kForks = 40;
constexpr unsigned kBlocks = 20'000;

void* blocks[kBlocks];

void Fill() {
  for (void*& block : blocks) {
    block = api::Malloc(1000);
    Require(block != nullptr, "there is memory");
    std::memset(block, 1, 1000);
  }
}
void Empty() {
  for (void* block : blocks) api::Free(block);
}

template <class Fork>
void ForkAgainAndAgain(Fork fork_here) {
  for (unsigned number = 0; number < kForks; ++number) {
    Fill();
    if (number % 2 == 0) Empty();
    Require(TaskCount() == 1, "it never had a thread, and has none of ours");
    const pid_t child = fork_here();
    if (child == 0) {
      alarm(20);
      if (number % 2 != 0) Empty();
      for (std::size_t size = 16; size < 300'000; size *= 2) api::Free(api::Malloc(size));
      _exit(7);
    }
    int status = 0;
    Require(child > 0 && waitpid(child, &status, 0) == child, "there is a child");
    Require(WIFEXITED(status) && WEXITSTATUS(status) == 7, "its heap works");
    if (number % 2 != 0) Empty();
  }
}

const Scene by_clone("ForkByClone", [] {
  ForkAgainAndAgain([] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); });
});
const Scene by_fork("ForkBy_Fork", [] {
  auto* const fork_alone = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "_Fork"));
  if (fork_alone != nullptr) ForkAgainAndAgain(fork_alone);  // since glibc 2.34
});

TEST(RawFork, ByClone) { ExpectScene("ForkByClone", 0); }
TEST(RawFork, By_Fork) { ExpectScene("ForkBy_Fork", 0); }

}  // namespace
}  // namespace hz_test
