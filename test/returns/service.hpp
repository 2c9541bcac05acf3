// SPDX-License-Identifier: Apache-2.0
//
// A process that the purger has work in: threads, of which some hold blocks and then sleep, and one that goes
// on. Called by the tests of the purger; starts it and waits for it.
#pragma once

#include <gtest/gtest.h>

#include "returns/crew.hpp"
#include "returns/load.hpp"
#include "returns/patience.hpp"
#include "stress/blocks.hpp"

namespace hz_test {

// Sanitizers make writing slow and resident memory dear.
constexpr std::size_t kServiceBytes = kUnderTool ? 64 * kMiB : 200 * kMiB;

class Service {
 public:
  explicit Service(unsigned threads = 4) : crew_(threads) {
    for (unsigned i = 0; i < threads; ++i) loads_.emplace_back(kServiceBytes / threads, Sizes::kMixed);
  }
  ~Service() { Empty(); }

  Crew& Threads() { return crew_; }
  void Fill() {
    crew_.Run([this](unsigned i) { loads_[i].Make(Seed() + i); });
  }
  // Half of it by the wrong threads.
  void Empty() {
    crew_.Run([this](unsigned i) { loads_[(i + i % 2 * 2) % loads_.size()].Free(); });
  }
  // Fills, empties and lets the threads sleep, until the purger is there.
  bool WakePurger(double seconds = 5) {
    return Within(seconds, [this] {
      Fill();
      Empty();
      return Purger() != 0;
    });
  }

 private:
  std::vector<Load> loads_;
  Crew crew_;
};

}  // namespace hz_test
