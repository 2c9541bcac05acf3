// SPDX-License-Identifier: Apache-2.0
//
// The contract of a guard: what may be freed, and what is said about the rest.
#include "box/guard/contract.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "contract/guard_boxes.hpp"
#include "support/capture.hpp"
#include "support/ended.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

template <class G>
class GuardContract : public ::testing::Test {
  static constexpr std::size_t kGranules = 2;
  static constexpr std::size_t kRowBytes = [] {
    if constexpr (requires { G::kTableBytesPerGranule; }) {
      return G::kTableBytesPerGranule;
    } else {
      return 0;
    }
  }();

 protected:
  GuardContract() : span_(kGranules * hz::kGranule), table_(kGranules * kRowBytes) {
    if constexpr (kRowBytes != 0) G::open(span_.address(), table_.address(), kGranules);
    G::join(thread_);
  }

  // As a refill hands it out, if it was never handed out.
  void* Slot(hz::Bin bin, unsigned index) {
    void* slot = span_.bytes() + index * hz::bin_size(bin);
    if (G::diagnose(thread_, slot, bin) == hz::Fault::kNotAllocated)
      G::move(slot, bin, hz::Phase::kLocalFree);
    return slot;
  }
  static hz::FreeSlot* AsFree(void* slot) { return static_cast<hz::FreeSlot*>(slot); }

  Region span_;
  Region table_;
  typename G::PerThread thread_;
};
TYPED_TEST_SUITE(GuardContract, GuardBoxes);

TYPED_TEST(GuardContract, ALiveSlotMayBeFreedOnce) {
  using G = TypeParam;
  for (hz::Bin bin = 1; bin <= hz::kLastMediumBin; ++bin) {
    for (unsigned index : {0u, 1u, hz::bin_slots(bin) - 1}) {
      if (index >= hz::bin_slots(bin)) continue;
      void* slot = this->Slot(bin, index);
      for (int life = 0; life < 3; ++life) {
        G::on_alloc(slot, bin);
        std::memset(slot, 0x11 * life, hz::bin_size(bin));
        ASSERT_TRUE(G::may_free(this->thread_, slot, bin));
        ASSERT_EQ(hz::Fault::kNone, G::diagnose(this->thread_, slot, bin));
        G::on_free(this->thread_, slot, bin);
        ASSERT_EQ(!G::kProves, G::may_free(this->thread_, slot, bin));
        ASSERT_EQ(G::kProves ? hz::Fault::kDoubleFree : hz::Fault::kNone,
                  G::diagnose(this->thread_, slot, bin));
        ASSERT_TRUE(G::intact(this->thread_, this->AsFree(slot)));
      }
    }
  }
}

TYPED_TEST(GuardContract, TheLinkOfAFreeSlotIsNotTheGuards) {
  using G = TypeParam;
  void* slot = this->Slot(1, 5);
  G::on_alloc(slot, 1);
  G::on_free(this->thread_, slot, 1);
  this->AsFree(slot)->next = this->AsFree(this->Slot(1, 6));
  EXPECT_TRUE(G::intact(this->thread_, this->AsFree(slot)));
}

TYPED_TEST(GuardContract, InteriorPointersAreFound) {
  using G = TypeParam;
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    const unsigned step = hz::bin_size(bin) > 4096 ? 509 : 1;
    for (unsigned offset = 1; offset < hz::bin_size(bin) && offset < hz::kGranule; offset += step) {
      void* inside = this->span_.bytes() + offset;
      ASSERT_FALSE(G::may_free(this->thread_, inside, bin)) << hz::bin_size(bin) << " at " << offset;
      ASSERT_EQ(hz::Fault::kInterior, G::diagnose(this->thread_, inside, bin));
    }
  }
}

TYPED_TEST(GuardContract, AFreeSlotThatWasWrittenToIsNotIntact) {
  using G = TypeParam;
  if (!G::kMarks) GTEST_SKIP() << "free slots carry no mark";
  for (hz::Bin bin = 1; bin <= hz::kLastMediumBin; ++bin) {
    void* slot = this->Slot(bin, 0);
    G::on_alloc(slot, bin);
    G::on_free(this->thread_, slot, bin);
    std::memset(slot, 0x77, 16);
    EXPECT_FALSE(G::intact(this->thread_, this->AsFree(slot)));
  }
}

TYPED_TEST(GuardContract, AnyThreadSeesWhatAnotherFreed) {
  using G = TypeParam;
  if (!G::kProves) GTEST_SKIP() << "it sees no second free";
  void* slot = this->Slot(4, 2);
  G::on_alloc(slot, 4);
  G::on_free(this->thread_, slot, 4);
  std::thread([&] {
    typename G::PerThread other;
    G::join(other);
    EXPECT_FALSE(G::may_free(other, slot, 4));
    EXPECT_EQ(hz::Fault::kDoubleFree, G::diagnose(other, slot, 4));
    EXPECT_TRUE(G::intact(other, this->AsFree(slot)));
  }).join();
}

TYPED_TEST(GuardContract, ReportsAreOneLineWithCodeAddressClassAndLine) {
  using G = TypeParam;
  Capture capture;
  G::report(hz::Fault::kSizeMismatch, reinterpret_cast<void*>(0xabc0), hz::scan_bin(100), "a-line");
  const std::string text = capture.Text();
  EXPECT_EQ(0u, text.find("hz: error: E05 ")) << text;
  for (const char* part : {" ptr=0xabc0 ", " class=112 ", " line=a-line ", " thread="}) {
    EXPECT_NE(std::string::npos, text.find(part)) << text;
  }
  EXPECT_EQ(text.size() - 1, text.find('\n'));
}

TYPED_TEST(GuardContract, ADoubleFreeEndsTheProgramByDefault) {
  using G = TypeParam;
  EXPECT_EXIT(G::report(hz::Fault::kDoubleFree, nullptr, 1, "a-line"), EndedByAbort, "hz: fatal: E03 ");
}

TYPED_TEST(GuardContract, WhatAStrangerClaimedArrives) {
  using G = TypeParam;
  constexpr bool kTwice = G::kMarks || !G::kProves;  // seen elsewhere, or not at all
  for (hz::Bin bin = 1; bin <= hz::kLastMediumBin; ++bin) {
    void* slot = this->Slot(bin, hz::bin_slots(bin) - 1);
    G::on_alloc(slot, bin);
    ASSERT_NE(nullptr, G::claim(this->thread_, slot, bin));
    ASSERT_EQ(!G::kProves, G::may_free(this->thread_, slot, bin)) << "claimed is freed";
    ASSERT_EQ(kTwice, G::claim(this->thread_, slot, bin) != nullptr) << "twice";
    ASSERT_TRUE(G::arrive(slot, bin));
    ASSERT_EQ(kTwice, G::arrive(slot, bin)) << "twice";
    ASSERT_EQ(!G::kProves, G::may_free(this->thread_, slot, bin));
    G::on_alloc(slot, bin);
    ASSERT_TRUE(G::may_free(this->thread_, slot, bin));
    G::on_free(this->thread_, slot, bin);
  }
}

TYPED_TEST(GuardContract, NoSlotSpeaksForItsNeighbour) {
  using G = TypeParam;
  if (G::kMarks || !G::kProves) GTEST_SKIP() << "no states out of line";
  for (hz::Bin bin = 1; bin <= hz::kLastMediumBin; ++bin) {
    for (unsigned i = 0; i < hz::bin_slots(bin); ++i) G::on_free(this->thread_, this->Slot(bin, i), bin);
    for (unsigned i = 0; i < hz::bin_slots(bin); i += 2) G::on_alloc(this->Slot(bin, i), bin);
    for (unsigned i = 0; i < hz::bin_slots(bin); ++i)
      ASSERT_EQ(i % 2 == 0, G::may_free(this->thread_, this->Slot(bin, i), bin))
          << hz::bin_size(bin) << " " << i;
    for (unsigned i = 0; i < hz::bin_slots(bin); i += 2) G::on_free(this->thread_, this->Slot(bin, i), bin);
  }
}

}  // namespace
}  // namespace hz_test
