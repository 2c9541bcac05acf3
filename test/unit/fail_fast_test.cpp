// SPDX-License-Identifier: Apache-2.0
//
// The fail-fast guard: its lines word for word, its modes, and its mark. The contract of a guard covers the
// rest.
#include "box/guard/fail_fast.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/capture.hpp"
#include "support/ended.hpp"

namespace hz_test {
namespace {

using hz::FailFast;
using hz::Fault;

class FailFastTest : public ::testing::Test {
 protected:
  ~FailFastTest() override { hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kAbort; }
  static std::string Reported(Fault fault, hz::Bin bin) {
    Capture capture;
    FailFast::report(fault, reinterpret_cast<void*>(0x7f12345678a0), bin, "some-line");
    return capture.Text();
  }
  static std::string Line(const std::string& what, const std::string& size) {
    return "hz: error: " + what + " ptr=0x7f12345678a0 class=" + size +
           " line=some-line thread=" + std::to_string(hz::os::thread_id()) + "\n";
  }
};

TEST_F(FailFastTest, EveryFaultHasItsLine) {
  hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kReport;
  EXPECT_EQ(Line("E01 foreign-pointer", "-"), Reported(Fault::kForeign, 0));
  EXPECT_EQ(Line("E02 not-allocated", "-"), Reported(Fault::kNotAllocated, 0));
  EXPECT_EQ(Line("E03 double-free", "16"), Reported(Fault::kDoubleFree, 1));
  EXPECT_EQ(Line("E04 interior-pointer", "2048"), Reported(Fault::kInterior, hz::kLastSmallBin));
  EXPECT_EQ(Line("E05 size-mismatch", "4194304"), Reported(Fault::kSizeMismatch, hz::kLastBin));
  EXPECT_EQ(Line("E06 write-after-free", "48"), Reported(Fault::kWriteAfterFree, 3));
  EXPECT_EQ(Line("E04 interior-pointer", "-"), Reported(Fault::kInterior, hz::kHugeBin))
      << "huge blocks have no class";
}

TEST_F(FailFastTest, AbortsByDefaultAndSaysFatal) {
  for (Fault fault : {Fault::kForeign, Fault::kNotAllocated, Fault::kDoubleFree, Fault::kInterior,
                      Fault::kWriteAfterFree}) {
    EXPECT_EXIT(FailFast::report(fault, nullptr, 1, "x"), EndedByAbort, "hz: fatal: E0. ");
  }
}

TEST_F(FailFastTest, ASizeMismatchIsNeverFatal) {
  EXPECT_EQ(Line("E05 size-mismatch", "32"), Reported(Fault::kSizeMismatch, 2));
}

TEST_F(FailFastTest, ABlockThatReallocCouldNotMoveSilencesNoOther) {
  int kept = 0;
  hz::FaultReport::keep(&kept);
  Capture capture;
  FailFast::report(Fault::kSizeMismatch, &kept, 2, "some-line");
  EXPECT_EQ("", capture.Text());
  EXPECT_EQ(Line("E05 size-mismatch", "32"), Reported(Fault::kSizeMismatch, 2));
}

TEST_F(FailFastTest, TheMarkIsOddAndOneForAllThreads) {
  FailFast::PerThread here;
  FailFast::PerThread there;
  FailFast::join(here);
  std::thread([&] { FailFast::join(there); }).join();
  EXPECT_EQ(1u, here.mark & 1);
  EXPECT_EQ(here.mark, there.mark);
}

TEST_F(FailFastTest, TheMarkStandsInTheSecondWord) {
  FailFast::PerThread thread;
  FailFast::join(thread);
  alignas(16) hz::FreeSlot slot = {&slot, 77};
  FailFast::on_free(thread, &slot, 1);
  EXPECT_EQ(&slot, slot.next) << "the link is the list's";
  EXPECT_EQ(thread.mark, slot.mark);
  FailFast::on_alloc(&slot, 1);
  EXPECT_EQ(0u, slot.mark) << "the secret is not handed out";
}

}  // namespace
}  // namespace hz_test
