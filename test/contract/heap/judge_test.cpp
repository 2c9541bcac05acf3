// SPDX-License-Identifier: Apache-2.0
//
// What is told of a bad pointer while other threads change what it points into: a look is passed on and not
// repeated, because the second may find another world. Runs that are gone after one look stand in for those
// threads.
#include "heap/api/judge.hpp"

#include <gtest/gtest.h>

#include "contract/heap/line.hpp"
#include "support/capture.hpp"

namespace hz_test {
namespace {

struct FleetingArena : hz::Arena {
  static inline int looks = 0;
  static inline bool fleeting = false;

  static std::uintptr_t start(Global& g, std::uintptr_t at) {
    return looks++ != 0 && fleeting ? 0 : hz::Arena::start(g, at);
  }
};

template <class Base>
struct Fleeting : Base {
  using Source = FleetingArena;
};

template <class Base>
class JudgeContract : public ::testing::Test {
 protected:
  using Heap = hz::Heap<Fleeting<Base>>;

  // What is said of an address, whose run is gone after so much as one look.
  static std::string Said(void* at) {
    Capture capture;
    FleetingArena::looks = 0;
    FleetingArena::fleeting = true;
    hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kReport;
    Heap::free(at);
    hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kAbort;
    FleetingArena::fleeting = false;
    return capture.Text();
  }
};
TYPED_TEST_SUITE(JudgeContract, ThisLine);

TYPED_TEST(JudgeContract, ARunThatGoesAfterTheLookIsReportedAsItWas) {
  using Heap = typename TestFixture::Heap;
  for (const std::size_t size : {std::size_t{100000}, 10 * hz::kMiB}) {
    void* block = Heap::malloc(size);
    ASSERT_NE(nullptr, block);
    const std::string said = this->Said(static_cast<char*>(block) + hz::kGranule + 16);
    EXPECT_EQ(1, FleetingArena::looks);
    EXPECT_NE(std::string::npos, said.find("E04 interior-pointer")) << said;
    const std::string of_class =
        kSealed<TypeParam> || size > hz::kLargeMax ? "-" : std::to_string(hz::bin_size(hz::scan_bin(size)));
    EXPECT_NE(std::string::npos, said.find(" class=" + of_class + " ")) << said;
    Heap::free(block);
  }
}

}  // namespace
}  // namespace hz_test
