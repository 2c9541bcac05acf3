// SPDX-License-Identifier: Apache-2.0
//
// What a heap owes where the system refuses the barrier on all threads: a revocation that cannot go on gives
// a thread its state back, which then meets its state hidden at one instruction and there at the next.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "support/fork.hpp"
#include "support/pattern.hpp"
#include "support/sanitizers.hpp"
#include "support/seccomp.hpp"

namespace hz_test {
namespace {

constexpr int kNoFilter = 77;

TEST(Refused, AFreeWhileAnotherThreadTrims) {
  const int answer = InAFork([] {
    SyscallFilter filter(SECCOMP_RET_ALLOW);
    filter.Decide(CallNumber("membarrier"), SECCOMP_RET_ERRNO | 1);
    if (!filter.Install()) return kNoFilter;
    std::atomic<bool> stop{false};
    std::thread trimmer([&stop] {
      while (!stop) hz_trim(0);
    });
    bool intact = true;
    for (int round = 0; round < (kUnderTool ? 20 : 100); ++round) {
      std::vector<void*> blocks(2000);
      for (std::size_t i = 0; i < blocks.size(); ++i) FillPattern(blocks[i] = hz_malloc(1000), 1000, i);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        intact &= HasPattern(blocks[i], 1000, i);
        hz_free(blocks[i]);
      }
    }
    stop = true;
    trimmer.join();
    return intact ? 0 : 1;
  });
  if (answer == kNoFilter) GTEST_SKIP() << "no filter of system calls here";
  EXPECT_EQ(0, answer);
}

}  // namespace
}  // namespace hz_test
