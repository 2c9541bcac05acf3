// SPDX-License-Identifier: Apache-2.0
//
// Remembers the first thing that went wrong, in memory that is there already: gtest's own words need a heap,
// and here the heap has no memory. Told to gtest, or to the parent of a forked child, when there is some
// again.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "stress/blocks.hpp"

namespace hz_test {

class Verdict {
 public:
  bool Expect(bool holds, const char* claim, const Block& block = {}) {
    if (!holds && !failed_.exchange(true)) {
      std::snprintf(text_, sizeof text_,
                    "%s: block %p of %zu bytes, seed %" PRIu64 ", errno %d, HZ_TEST_SEED=%" PRIu64, claim,
                    block.at, block.size, block.seed, errno, Seed());
    }
    return holds;
  }
  bool Failed() const { return failed_; }
  const char* Text() const { return text_; }

  void Tell() const { EXPECT_FALSE(Failed()) << text_; }
  void Write() const {
    if (Failed() && (write(2, text_, std::strlen(text_)) < 0 || write(2, "\n", 1) < 0)) _exit(4);
  }

 private:
  std::atomic<bool> failed_{false};
  char text_[400] = {};
};

}  // namespace hz_test
