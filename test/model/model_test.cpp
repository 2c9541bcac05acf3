// SPDX-License-Identifier: Apache-2.0
//
// Random operations on many threads against an oracle that knows what every block must hold: content,
// alignment, usable size, and that no two live blocks overlap. Blocks wander between threads, and threads end
// and begin while their blocks live on. HZ_TEST_SEED repeats the choices of a run, HZ_TEST_SECONDS lengthens
// it.
#include <gtest/gtest.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "model/block.hpp"
#include "model/live_map.hpp"
#include "stress/scale.hpp"
#include "stress/threads.hpp"
#include "support/capture.hpp"
#include "support/pattern.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Model;

// The blocks of one slot of the model. The thread that serves the slot changes; the blocks stay.
class Slot {
 public:
  Slot(Model& model, unsigned number) : model_(model), random_(Seed() * 1000 + number) {}

  void Run(unsigned operations);
  void Deliver(const Block& block) {
    const std::lock_guard<std::mutex> hold(mutex_);
    inbox_.push_back(block);
  }
  void FreeEverything();

 private:
  void Step();
  void Make();
  void Resize(Block& block);
  void Free(const Block& block);
  void Receive();
  bool Accept(Block& block);
  bool Check(const Block& block);
  std::size_t AnySize();
  Block TakeAny() {
    std::swap(blocks_[Below(random_, blocks_.size())], blocks_.back());
    const Block block = blocks_.back();
    blocks_.pop_back();
    bytes_ -= block.usable;
    return block;
  }
  void Keep(const Block& block) {
    blocks_.push_back(block);
    bytes_ += block.usable;
  }

  Model& model_;
  Random random_;
  std::vector<Block> blocks_;
  std::size_t bytes_ = 0;
  std::mutex mutex_;
  std::vector<Block> inbox_;
};

class Model {
 public:
  explicit Model(bool map_blocks) : map_blocks_(map_blocks) {
    std::printf("HZ_TEST_SEED=%" PRIu64 "\n", Seed());
    for (unsigned i = 0; i < kSlots; ++i) slots_.push_back(std::make_unique<Slot>(*this, i));
  }

  // Lets every slot be served by one thread after the other until the time is over.
  void Run(std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    constexpr unsigned kOperationsPerThread = 3000;
    Together(kSlots, [&](unsigned i) {
      do {
        Thread generation([&, i] { slots_[i]->Run(kOperationsPerThread); });
      } while (std::chrono::steady_clock::now() < end && !failed_);
    });
    for (auto& slot : slots_) slot->FreeEverything();
    EXPECT_TRUE(live_.Empty());
  }

  std::uint64_t NextId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  Slot& AnySlot(Random& random) { return *slots_[Below(random, slots_.size())]; }
  bool Insert(const Block& block) { return !map_blocks_ || live_.Insert(block.at, block.usable); }
  bool Erase(const Block& block) { return !map_blocks_ || live_.Erase(block.at, block.usable); }
  bool Failed() const { return failed_; }

  // Only the first one is told: what follows may be its consequence.
  bool Expect(bool holds, const char* claim, const Block& block) {
    if (!holds && !failed_.exchange(true)) {
      ADD_FAILURE() << claim << ": block " << static_cast<void*>(block.at) << " size " << block.size
                    << " usable " << block.usable << " alignment " << block.alignment << " id " << block.id;
    }
    return holds;
  }

 private:
  static constexpr unsigned kSlots = 8;

  const bool map_blocks_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> next_id_{1};
  LiveMap live_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

constexpr std::size_t kBytesPerSlot = 32 * kMiB;
constexpr std::size_t kBlocksPerSlot = 4000;

void Slot::Run(unsigned operations) {
  for (unsigned i = 0; i < operations && !model_.Failed(); ++i) Step();
}

void Slot::Step() {
  const std::size_t dice = Below(random_, 1000);
  const bool full = bytes_ > kBytesPerSlot || blocks_.size() > kBlocksPerSlot;
  if (blocks_.empty() || (dice < 480 && !full)) return Make();
  if (dice < 500) return Receive();
  if (dice < 501 && Below(random_, 10) == 0) {
    hz_trim(Below(random_, 2) * kMiB);
    return;
  }
  Block block = TakeAny();
  if (!Check(block)) return;
  if (dice < 560) {
    Keep(block);
  } else if (dice < 640) {
    Resize(block);
  } else if (dice < 800) {
    model_.AnySlot(random_).Deliver(block);
  } else {
    Free(block);
  }
}

std::size_t Slot::AnySize() {
  const std::size_t dice = Below(random_, 10000);
  if (dice < 9000) return LogSize(random_, 10);
  if (dice < 9900) return LogSize(random_, 16);
  if (dice < 9995) return LogSize(random_, 23);
  return LogSize(random_, 26);
}

void Slot::Make() {
  Block block;
  block.size = AnySize();
  const std::size_t dice = Below(random_, 100);
  if (dice < 60) {
    block.at = static_cast<unsigned char*>(hz_malloc(block.size));
  } else if (dice < 80) {
    block.at = static_cast<unsigned char*>(hz_calloc(1, block.size));
    if (block.at != nullptr && !model_.Expect(IsZero(block.at, block.size), "calloc gives zeroes", block))
      return;
  } else if (dice < 85) {
    block.at = static_cast<unsigned char*>(hz_realloc(nullptr, block.size));
  } else {
    block.alignment = std::size_t{1} << Below(random_, Below(random_, 20) == 0 ? 22 : 13);
    block.at = static_cast<unsigned char*>(hz_aligned_alloc(block.alignment, block.size));
  }
  if (Accept(block)) Keep(block);
}

// A block as it came from the heap.
bool Slot::Accept(Block& block) {
  if (!model_.Expect(block.at != nullptr, "there is memory", block)) return false;
  block.id = model_.NextId();
  block.usable = hz_usable_size(block.at);
  const bool aligned = IsAligned(block.at, std::max<std::size_t>(block.alignment, 16));
  if (!model_.Expect(aligned, "alignment", block)) return false;
  if (!model_.Expect(block.usable >= block.size, "usable size covers the size", block)) return false;
  if (!model_.Expect(model_.Insert(block), "no overlap with a live block", block)) return false;
  Write(block);
  return true;
}

bool Slot::Check(const Block& block) {
  return model_.Expect(Holds(block), "content", block) &&
         model_.Expect(hz_usable_size(block.at) == block.usable, "usable size is constant", block) &&
         model_.Expect(hz_owns(block.at) == 1, "owned", block);
}

void Slot::Resize(Block& block) {
  if (!model_.Expect(model_.Erase(block), "known to the map", block)) return;
  const std::size_t old_size = block.size;
  const std::size_t wanted =
      Below(random_, 3) == 0 ? AnySize() : block.size / 2 + Below(random_, block.size + 64) + 1;
  block.size = std::min(wanted, 64 * kMiB);
  auto* moved = static_cast<unsigned char*>(hz_realloc(block.at, block.size));
  if (!model_.Expect(moved != nullptr, "there is memory", block)) return;
  block.at = moved;
  block.alignment = 0;
  block.resized = true;
  if (!model_.Expect(HoldsUpTo(block, std::min(old_size, block.size)), "realloc keeps the content", block))
    return;
  if (Accept(block)) Keep(block);
}

void Slot::Free(const Block& block) {
  if (!model_.Expect(model_.Erase(block), "known to the map", block)) return;
  if (Below(random_, 4) != 0 || block.resized) {
    hz_free(block.at);
  } else if (block.alignment != 0) {
    hz_free_aligned_sized(block.at, block.alignment, block.size);
  } else {
    hz_free_sized(block.at, block.size);
  }
}

// Most of what others sent is freed here, the rest is kept.
void Slot::Receive() {
  std::vector<Block> received;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    received.swap(inbox_);
  }
  for (const Block& block : received) {
    if (!Check(block)) return;
    if (Below(random_, 10) == 0) {
      Keep(block);
    } else {
      Free(block);
    }
  }
}

void Slot::FreeEverything() {
  Receive();
  while (!blocks_.empty() && !model_.Failed()) {
    const Block block = TakeAny();
    if (Check(block)) Free(block);
  }
}

void RunModel(bool map_blocks) {
  const Watchdog watchdog(240 + static_cast<unsigned>(NumberFrom("HZ_TEST_SECONDS", 0)));
  Model model(map_blocks);
  Capture said;  // nothing here is wrong, so nothing may be reported
  model.Run(std::chrono::milliseconds(NumberFrom("HZ_TEST_SECONDS", Quick() ? 1 : 5) * 1000 / 2));
  const std::string text = said.Text();
  EXPECT_TRUE(text.empty()) << text.substr(0, 300);
  hz_stats_t stats = {};
  hz_stats(&stats, sizeof stats);
  EXPECT_EQ(0U, stats.bytes_live) << "every block was freed";
}

TEST(Model, BlocksAreSoundAndDisjoint) { RunModel(true); }

// The map orders the threads by its mutexes, and so hides what they do to each other.
TEST(Model, BlocksAreSoundWithoutTheMap) { RunModel(false); }

}  // namespace
}  // namespace hz_test
