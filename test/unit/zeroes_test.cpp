// SPDX-License-Identifier: Apache-2.0
//
// Memory that is made zero and proved to be: every byte of it, none beside it, at every length.
#include "base/zeroes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

namespace hz_test {
namespace {

using hz::Zeroes;

constexpr std::size_t kLane = 16, kMost = 1300;

// Of one length: what lies in the middle of bytes that are not zero.
class Stretch {
 public:
  explicit Stretch(std::size_t length) : length_(length) { all_.fill(0xAA); }
  std::uintptr_t Begin() { return hz::address(all_.data()) + kLane; }
  std::uintptr_t End() { return Begin() + length_; }
  std::span<unsigned char> Bytes() { return std::span(all_).subspan(kLane, length_); }
  bool IsZeroAlone() {
    const auto is = [](unsigned char value) { return [value](unsigned char byte) { return byte == value; }; };
    return std::ranges::all_of(Bytes(), is(0)) &&
           std::ranges::all_of(std::span(all_).first(kLane), is(0xAA)) &&
           std::ranges::all_of(std::span(all_).subspan(kLane + length_), is(0xAA));
  }

 private:
  alignas(kLane) std::array<unsigned char, kMost + 3 * kLane> all_;
  std::size_t length_;
};

void AtEveryLength(auto write, auto are) {
  for (std::size_t length = kLane / 2; length <= kMost; length += kLane) {
    Stretch stretch(length);
    EXPECT_FALSE(are(stretch.Begin(), stretch.End())) << length;
    write(stretch.Begin(), stretch.End());
    ASSERT_TRUE(stretch.IsZeroAlone()) << length;
    EXPECT_TRUE(are(stretch.Begin(), stretch.End())) << length;
    for (unsigned char& byte : stretch.Bytes()) {
      byte = 0x10;
      ASSERT_FALSE(are(stretch.Begin(), stretch.End())) << length << " " << &byte - stretch.Bytes().data();
      byte = 0;
    }
  }
}

TEST(Zeroes, AreWrittenAndProvedInPlace) {
  AtEveryLength([](std::uintptr_t at, std::uintptr_t end) { Zeroes::write(at, end); },
                [](std::uintptr_t at, std::uintptr_t end) { return Zeroes::are(at, end); });
}

TEST(Zeroes, AreWrittenAndProvedWhereThereIsMuch) {
  Zeroes::open();
  AtEveryLength(Zeroes::write_much, Zeroes::are_much);
}

}  // namespace
}  // namespace hz_test
