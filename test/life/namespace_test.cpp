// SPDX-License-Identifier: Apache-2.0
//
// What only a process of one thread may do, the heap must not take away: entering a namespace of users.
#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <vector>

#include "life/scene.hpp"
#include "support/heap_api.hpp"

namespace hz_test {
namespace {

constexpr int kEntered = 40;  // else: the error, as the exit code

void Enter() { _exit(unshare(CLONE_NEWUSER) == 0 ? kEntered : errno); }

const Scene at_once("EnterAtOnce", &Enter);

// Blocks of a size that fills spans, all of them freed; and then time for whatever works in the background.
const Scene later("EnterLater", [] {
  for (int burst = 0; burst < 2; ++burst) {
    std::vector<void*> blocks;
    for (int i = 0; i < 200'000; ++i) {
      blocks.push_back(api::Malloc(1000));
      Require(blocks.back() != nullptr, "there is memory");
      *static_cast<char*>(blocks.back()) = 1;
    }
    for (void* block : blocks) api::Free(block);
    usleep(700'000);
  }
  Enter();
});

TEST(Restrictions, AProgramOfOneThreadMayEnterAUserNamespace) {
  const int refused = RunScene("EnterAtOnce").exit_code;
  if (refused != kEntered) GTEST_SKIP() << "refused by the kernel: error " << refused;
  const ChildResult result = RunScene("EnterLater");
  EXPECT_EQ(kEntered, result.exit_code) << "error, or signal " << result.signal << "\n" << result.err;
}

}  // namespace
}  // namespace hz_test
