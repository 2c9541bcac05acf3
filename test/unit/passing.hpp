// SPDX-License-Identifier: Apache-2.0
//
// Several threads give chains of slots to something that keeps them, and take them out again, until every
// slot has gone round a number of times: nothing is lost, nothing is held by two at once, and whoever takes a
// slot sees what its giver wrote (plain words, so that ThreadSanitizer sees it if not). Called by tests of
// shared lists.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "unit/slots.hpp"

namespace hz_test {

// give(const hz::Chain&) and take(unsigned want) -> what it took, from any thread; slots of `slot_bytes`.
template <class Give, class Take>
void ExpectPassedExactlyOnce(std::size_t slot_bytes, Give give, Take take) {
  constexpr unsigned kThreads = 4;
  constexpr std::size_t kSlotsEach = 256;
  constexpr unsigned kRounds = 40;
  constexpr std::size_t kPasses = kThreads * kSlotsEach * kRounds;
  constexpr std::chrono::seconds kPatience{20};

  Slots slots(kThreads * kSlotsEach, slot_bytes);
  std::vector<std::atomic<bool>> held(slots.count());
  std::vector<unsigned> rounds_left(slots.count(), kRounds);
  std::atomic<std::size_t> passes{0};
  std::atomic<bool> failed{false};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;

  const auto run = [&](unsigned id) {
    std::mt19937 random(id);
    for (std::size_t done = 0; done < kSlotsEach;) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 9, kSlotsEach - done);
      give(slots.ChainOf(id * kSlotsEach + done, n));
      done += n;
    }
    while (passes.load() < kPasses && !failed.load()) {
      const std::vector<void*> taken = take(1 + static_cast<unsigned>(random() % 30));
      if (taken.empty()) {
        if (std::chrono::steady_clock::now() > deadline) failed = true;
        std::this_thread::yield();
        continue;
      }
      for (void* slot : taken) {
        if (held[slots.IndexOf(slot)].exchange(true)) failed = true;
      }
      hz::Chain again = {};
      for (void* slot : taken) {
        const std::size_t i = slots.IndexOf(slot);
        if (--rounds_left[i] != 0) {
          held[i] = false;
          again.push(slot);
        }
        if (again.count != 0 && (again.count == 9 || slot == taken.back())) {
          give(again);
          again = {};
        }
      }
      passes += taken.size();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) threads.emplace_back(run, id);
  for (std::thread& thread : threads) thread.join();

  EXPECT_FALSE(failed) << "a slot was held twice, or one was lost";
  EXPECT_EQ(kPasses, passes.load());
  EXPECT_TRUE(take(1).empty()) << "more came out than went in";
  for (std::size_t i = 0; i < slots.count(); ++i) ASSERT_EQ(0u, rounds_left[i]) << i;
}

}  // namespace hz_test
