// SPDX-License-Identifier: Apache-2.0
//
// How much larger a process becomes by what it does. Called by the tests of limits.
#pragma once

#include <gtest/gtest.h>

#include "stress/pile.hpp"
#include "stress/scale.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {

// Of the process, not of the heap: threads' stacks and states, tables of the heap that were never counted as
// taken.
inline constexpr std::size_t kBeside = 6 * kMiB;

// What the process has grown by since this object was made. A sanitizer's own memory is no matter of ours.
class Growth {
 public:
  std::size_t Bytes() const {
    const std::size_t now = RssBytes();
    return kUnderTool || now < before_ ? 0 : now - before_;
  }

 private:
  std::size_t before_ = RssBytes();
};

// Half of the limit in blocks of one size, freed, then as much in blocks of another; caches as large as can
// be. How much larger the process was at the most. There is a second thread, so there is a purger that the
// heap may keep memory for: a process that never had one gives back as it frees.
inline std::size_t PeakOfGenerations() {
  const Growth growth;
  Barrier end(2);
  const Thread other([&end] { end.Wait(); });
  std::size_t peak = 0;
  for (std::size_t size : {std::size_t{96}, std::size_t{1000}, std::size_t{5000}}) {
    Pile pile;
    while (pile.Bytes() < 40 * kMiB) {
      if (!pile.Grow(size)) ADD_FAILURE() << "a soft limit refuses nothing";
    }
    if (growth.Bytes() > peak) peak = growth.Bytes();
    EXPECT_TRUE(pile.FreeAll());
  }
  end.Wait();
  return peak;
}

}  // namespace hz_test
