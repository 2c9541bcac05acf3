// SPDX-License-Identifier: Apache-2.0
//
// A huge block that two threads free at once. A source that runs the second thread in the middle of the first
// one's free stands in for luck; test/stress tries with threads that race.
#include "heap/huge/huge.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "contract/heap/line.hpp"
#include "support/capture.hpp"

namespace hz_test {
namespace {

struct CrowdedArena : hz::Arena {
  static inline void (*meanwhile)() = nullptr;

  static std::size_t granules(Global& g, std::uintptr_t start) {
    if (void (*other)() = std::exchange(meanwhile, nullptr)) other();
    return hz::Arena::granules(g, start);
  }
};

template <class Base>
struct Crowded : Base {
  using Source = CrowdedArena;
};

template <class Base>
class HugeContract : public ::testing::Test {
 protected:
  using Heap = hz::Heap<Crowded<Base>>;
  using S = hz::State<Crowded<Base>>;
  static inline void* block = nullptr;

  static void FreeElsewhere() {
    std::thread([] { Heap::free(block); }).join();
  }
};
TYPED_TEST_SUITE(HugeContract, ThisLine);

TYPED_TEST(HugeContract, OneOfTwoFreesAtOnceIsToldAndTheRunsStayWhole) {
  using Heap = typename TestFixture::Heap;
  using S = typename TestFixture::S;
  constexpr std::size_t kSize = 9 * hz::kMiB;
  for (int round = 0; round < 3; ++round) {
    TestFixture::block = Heap::malloc(kSize);
    ASSERT_NE(nullptr, TestFixture::block);
    Capture capture;
    hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kReport;
    CrowdedArena::meanwhile = &TestFixture::FreeElsewhere;
    Heap::free(TestFixture::block);
    hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kAbort;
    const std::string said = capture.Text();
    EXPECT_EQ(nullptr, CrowdedArena::meanwhile) << "the other one came";
    // A fenced run that the other thread released before this one asked about it is not allocated.
    const std::size_t first = said.find("E03 double-free");
    const std::size_t told = TypeParam::Guard::kSealBytes != 0 && first == std::string::npos
                                 ? said.find("E02 not-allocated")
                                 : first;
    EXPECT_NE(std::string::npos, told) << said;
    EXPECT_EQ(std::string::npos, said.find("hz: error", told + 1)) << said;
    EXPECT_EQ(0U, S::global.huge_blocks.load());
    EXPECT_EQ(0U, S::global.huge_bytes.load());
    void* one = Heap::malloc(kSize);
    void* another = Heap::malloc(kSize);
    EXPECT_NE(one, another);
    EXPECT_EQ(2U, S::global.huge_blocks.load());
    Heap::free(one);
    Heap::free(another);
  }
}

}  // namespace
}  // namespace hz_test
