// SPDX-License-Identifier: Apache-2.0
//
// A list of extensions: an event goes to each of them, any other call to the one that defines it, and an
// empty list has the defaults.
#include "heap/samples/extension.hpp"

#include <gtest/gtest.h>

namespace hz_test {
namespace {

using hz::ExtensionList;
using hz::Rates;

int children = 0;

struct Blocks : virtual hz::NoExtension {
  static void in_child() { ++children; }
  static bool has(const void* at) { return at == &children; }
};
struct Record : virtual hz::NoExtension {
  static void in_child() { children += 10; }
  static bool change(const Rates& before, const Rates& now, const char*, bool&) {
    return before.interval == now.interval;
  }
  static bool records() { return true; }
  static constexpr auto words(hz::layout::Part, hz::layout::Part) {
    return hz::layout::Words<1>{hz::layout::Word("one", 1)};
  }
};
struct OtherBlocks : virtual hz::NoExtension {
  static bool has(const void*) { return true; }
};
using Both = ExtensionList<Record, Blocks>;
using None = ExtensionList<>;

template <class List>
concept KnowsWhoHas = requires {
  List::has(nullptr);
};
static_assert(KnowsWhoHas<Both> && KnowsWhoHas<None>);
static_assert(!KnowsWhoHas<ExtensionList<Blocks, Record, OtherBlocks>>, "two may own an address");
static_assert(Both::words(1, 2).size() == 1 && None::words(1, 2).empty());

TEST(Extensions, HearOfEvents) {
  children = 0;
  Both::in_child();
  EXPECT_EQ(11, children);
  bool walking = false;
  EXPECT_TRUE(Both::change({.every = 1}, {.every = 2}, "", walking));
  EXPECT_FALSE(Both::change({.interval = 1}, {.interval = 2}, "", walking));
}

TEST(Extensions, AnswerForEachOther) {
  EXPECT_TRUE(Both::has(&children));
  EXPECT_FALSE(Both::has(nullptr));
  EXPECT_TRUE(Both::records());
  EXPECT_EQ(nullptr, Both::take(1, 16, 16)) << "that is none of theirs";
}

TEST(Extensions, OfAnEmptyListDoNothing) {
  bool walking = false;
  None::in_child();
  EXPECT_TRUE(None::change({}, {.interval = 1, .every = 1}, "", walking));
  EXPECT_FALSE(None::has(&children) || None::may_take(1) || None::records());
  EXPECT_EQ(nullptr, None::take(1, 16, 16));
  EXPECT_EQ(hz::kHugeBin, None::bin_of(&children));
  EXPECT_EQ(nullptr, None::begin_of_words());
}

}  // namespace
}  // namespace hz_test
