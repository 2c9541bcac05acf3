// SPDX-License-Identifier: Apache-2.0
//
// Bytes that are copied and cleared without the C library: all of them and none beside them, at every length
// and offset, and where they overlap.
#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace hz_test {
namespace {

constexpr std::size_t kMost = 300, kEdge = 70;
using Room = std::array<unsigned char, kMost + 2 * kEdge>;

Room Numbered() {
  Room room;
  std::iota(room.begin(), room.end(), 1);
  return room;
}

TEST(Bytes, AreCopiedAtEveryLength) {
  const Room from = Numbered();
  for (std::size_t length = 0; length <= kMost; ++length) {
    for (std::size_t offset = 0; offset < 17; ++offset) {
      Room to = {}, wanted = {};
      std::copy_n(from.begin() + 3, length, wanted.begin() + offset);
      hz::copy_bytes(to.data() + offset, from.data() + 3, length);
      ASSERT_EQ(to, wanted) << length << " bytes to " << offset;
    }
  }
}

TEST(Bytes, AreCopiedToWhereTheyOverlapFromAbove) {
  for (std::size_t length = 0; length <= kMost; ++length) {
    for (std::size_t distance = 1; distance <= kEdge; ++distance) {
      Room room = Numbered(), wanted = room;
      std::copy_n(wanted.begin() + distance, length, wanted.begin());
      hz::copy_bytes(room.data(), room.data() + distance, length);
      ASSERT_EQ(room, wanted) << length << " bytes from " << distance << " above";
    }
  }
}

TEST(Bytes, AreClearedAtEveryLength) {
  for (std::size_t length = 0; length <= kMost; ++length) {
    for (std::size_t offset = 0; offset < 17; ++offset) {
      Room room = Numbered(), wanted = room;
      std::fill_n(wanted.begin() + offset, length, 0);
      hz::clear_bytes(room.data() + offset, length);
      ASSERT_EQ(room, wanted) << length << " bytes at " << offset;
    }
  }
}

}  // namespace
}  // namespace hz_test
