// SPDX-License-Identifier: Apache-2.0
//
// The life of a slot: every step that there is, every one that there is not, and the seals of claims. The
// table on the line's page is made from the code here.
#include "box/guard/lifecycle.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::Phase;

struct ThisTest {};
using Guard = hz::Lifecycle<ThisTest>;

constexpr const char* kNames[] = {"released",       "central-free",  "local-free", "allocated",
                                  "remote-pending", "transfer-free", "orphan"};
static_assert(std::size(kNames) == Guard::kPhases);

class Lifecycle : public ::testing::Test {
 protected:
  Lifecycle() : span_(hz::kGranule), table_(Guard::kTableBytesPerGranule) {
    Guard::open(span_.address(), table_.address(), 1);
  }

  // A slot in that phase, from the beginning, as an outbox or anybody else holds it then.
  void* In(Phase phase, hz::Bin bin, unsigned index) {
    void* const slot = span_.bytes() + index * hz::bin_size(bin);
    void* held = slot;
    const auto go = [&](Phase to) { EXPECT_TRUE(Guard::move(held, bin, to)); };
    if (phase == Phase::kReleased) return held;
    go(Phase::kLocalFree);
    if (phase == Phase::kLocalFree) return held;
    if (phase == Phase::kCentralFree || phase == Phase::kTransferFree) return go(phase), held;
    Guard::on_alloc(held, bin);
    if (phase == Phase::kAllocated) return held;
    held = Guard::claim(thread_, held, bin);
    EXPECT_NE(nullptr, held);
    if (phase == Phase::kOrphan) go(phase);
    return held;
  }

  Region span_, table_;
  Guard::PerThread thread_;
};

TEST_F(Lifecycle, HasTheStepsOfTheTableAndNoOthers) {
  const hz::Bin bin = hz::scan_bin(64);
  unsigned index = 0, refused = 0;
  for (unsigned from = 0; from < Guard::kPhases; ++from) {
    for (unsigned to = 0; to < Guard::kPhases; ++to) {
      bool listed = false;
      for (const hz::Step& step : hz::kSteps)
        listed |= step.from == static_cast<Phase>(from) && step.to == static_cast<Phase>(to);
      void* slot = In(static_cast<Phase>(from), bin, index++);
      EXPECT_EQ(listed, Guard::move(slot, bin, static_cast<Phase>(to)))
          << kNames[from] << " to " << kNames[to];
      refused += listed ? 0 : 1;
    }
  }
  EXPECT_EQ(Guard::kPhases * Guard::kPhases - std::size(hz::kSteps), refused);
}

TEST_F(Lifecycle, ARefusedStepChangesNothing) {
  const hz::Bin bin = hz::scan_bin(200);
  void* slot = In(Phase::kTransferFree, bin, 0);
  EXPECT_FALSE(Guard::move(slot, bin, Phase::kReleased));
  EXPECT_FALSE(Guard::move(slot, bin, Phase::kOrphan));
  EXPECT_TRUE(Guard::move(slot, bin, Phase::kLocalFree)) << "it is still in the transfer cache";
}

TEST_F(Lifecycle, OnlyTheAllocatedMayBeFreedOrClaimed) {
  const hz::Bin bin = hz::scan_bin(48);
  for (unsigned phase = 0; phase < Guard::kPhases; ++phase) {
    void* slot = In(static_cast<Phase>(phase), bin, phase);
    slot = span_.bytes() + phase * hz::bin_size(bin);
    const bool live = static_cast<Phase>(phase) == Phase::kAllocated;
    const bool never = static_cast<Phase>(phase) == Phase::kReleased;
    EXPECT_EQ(live, Guard::may_free(thread_, slot, bin)) << kNames[phase];
    EXPECT_EQ(live    ? hz::Fault::kNone
              : never ? hz::Fault::kNotAllocated
                      : hz::Fault::kDoubleFree,
              Guard::diagnose(thread_, slot, bin))
        << kNames[phase];
    EXPECT_EQ(live, Guard::claim(thread_, slot, bin) != nullptr) << kNames[phase];
  }
}

// The owner frees, in the same few instructions, what a stranger claims: the claim is overwritten, and its
// entry is void, also when the slot has been freed by a stranger again meanwhile.
TEST_F(Lifecycle, ASealOpensForItsOwnGenerationOnly) {
  const hz::Bin bin = hz::scan_bin(32);
  void* slot = In(Phase::kAllocated, bin, 0);
  EXPECT_TRUE(Guard::may_free(thread_, slot, bin));
  void* const lost = Guard::claim(thread_, slot, bin);
  ASSERT_NE(nullptr, lost);
  Guard::on_free(thread_, slot, bin);
  for (unsigned life = 1; life < Guard::kGenerations; ++life) {
    void* stale = lost;
    EXPECT_FALSE(Guard::move(stale, bin, Phase::kTransferFree)) << life;
    EXPECT_EQ(slot, stale) << "it can be reported";
    Guard::on_alloc(slot, bin);
    stale = lost;
    EXPECT_FALSE(Guard::move(stale, bin, Phase::kTransferFree)) << life;
    void* fresh = Guard::claim(thread_, slot, bin);
    ASSERT_NE(nullptr, fresh) << life;
    stale = lost;
    EXPECT_FALSE(Guard::move(stale, bin, Phase::kTransferFree)) << life;
    EXPECT_TRUE(Guard::move(fresh, bin, Phase::kLocalFree)) << life;
    EXPECT_EQ(slot, fresh);
  }
}

TEST_F(Lifecycle, APendingSlotMovesBySealAloneAndNoOtherOneDoes) {
  const hz::Bin bin = hz::scan_bin(32);
  void* const was = In(Phase::kRemotePending, bin, 0);
  void* sealed = was;
  void* plain = span_.bytes();
  EXPECT_FALSE(Guard::move(plain, bin, Phase::kTransferFree));
  EXPECT_TRUE(Guard::move(sealed, bin, Phase::kTransferFree));
  EXPECT_FALSE(Guard::move(sealed = was, bin, Phase::kLocalFree)) << "it is in no outbox any more";
}

// What a bin holds is handed out if it is free, and not otherwise.
TEST_F(Lifecycle, OnlyAFreeSlotIsHandedOut) {
  const hz::Bin bin = hz::scan_bin(80);
  for (unsigned phase = 0; phase < Guard::kPhases; ++phase) {
    In(static_cast<Phase>(phase), bin, phase);
    void* slot = span_.bytes() + phase * hz::bin_size(bin);
    const hz::Fault before = Guard::diagnose(thread_, slot, bin);
    const bool free = static_cast<Phase>(phase) == Phase::kLocalFree;
    EXPECT_EQ(free, Guard::on_alloc(slot, bin)) << kNames[phase];
    if (!free) {
      EXPECT_EQ(before, Guard::diagnose(thread_, slot, bin)) << kNames[phase];
    }
  }
}

TEST_F(Lifecycle, ASpanRetiresWhenAllItsSlotsAreInIt) {
  for (const std::size_t size : {16, 48, 200, 4096, 65536}) {
    Region span(hz::kGranule), table(Guard::kTableBytesPerGranule);
    Guard::open(span.address(), table.address(), 1);
    const hz::Bin bin = hz::scan_bin(size);
    void* last = span.bytes() + (hz::bin_slots(bin) - 1) * hz::bin_size(bin);
    EXPECT_EQ(nullptr, Guard::retire(span.address(), bin)) << "nothing was carved";
    EXPECT_TRUE(Guard::move(last, bin, Phase::kLocalFree));
    EXPECT_EQ(last, Guard::retire(span.address(), bin)) << "one is out";
    EXPECT_EQ(hz::Fault::kNotAllocated, Guard::diagnose(thread_, last, bin))
        << "and is released all the same";
    EXPECT_TRUE(Guard::move(last, bin, Phase::kLocalFree));
    EXPECT_TRUE(Guard::move(last, bin, Phase::kCentralFree));
    EXPECT_EQ(nullptr, Guard::retire(span.address(), bin));
    EXPECT_EQ(hz::Fault::kNotAllocated, Guard::diagnose(thread_, last, bin));
    Guard::open(span_.address(), table_.address(), 1);
  }
}

std::string Table() {
  std::ostringstream out;
  out << "| from | to | by |\n|---|---|---|\n";
  for (const hz::Step& step : hz::kSteps)
    out << "| " << kNames[static_cast<unsigned>(step.from)] << " | " << kNames[static_cast<unsigned>(step.to)]
        << " | " << step.by << " |\n";
  return out.str();
}

TEST(LifecycleTable, OnThePageIsThatOfTheCode) {
  std::ifstream page(HZ_TEST_DOC "/line/hz6.md");
  std::ostringstream text;
  text << page.rdbuf();
  EXPECT_NE(std::string::npos, text.str().find("\n\n" + Table() + "\n")) << "doc/line/hz6.md is to have:\n"
                                                                         << Table();
}

}  // namespace
}  // namespace hz_test
