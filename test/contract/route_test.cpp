// SPDX-License-Identifier: Apache-2.0
//
// The contract of a route: what is known of an address.
#include "box/route/contract.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "contract/route_boxes.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::kGranule;
using hz::kPage;

template <class R>
class RouteContract : public ::testing::Test {
 protected:
  static constexpr std::size_t kGranules = 64;

  RouteContract() : arena_(kGranules * kGranule) {}
  void Open() { R::open(route_, arena_.address(), arena_.size()); }
  std::uintptr_t At(std::size_t granule, std::size_t offset = 0) const {
    return arena_.address() + granule * kGranule + offset;
  }
  typename R::Tag Find(std::uintptr_t at) const { return R::find(route_, at); }
  std::vector<std::uintptr_t> Outside() const {
    std::vector<std::uintptr_t> all = {0,
                                       1,
                                       16,
                                       SIZE_MAX,
                                       SIZE_MAX - 15,
                                       std::uintptr_t{1} << 63,
                                       (std::uintptr_t{1} << 63) - 1,
                                       std::uintptr_t{1} << 47,
                                       hz::address(this)};
    for (std::uintptr_t distance : {std::uintptr_t{1}, std::uintptr_t{4096}, std::uintptr_t{1} << 30}) {
      all.push_back(arena_.address() - distance);
      all.push_back(arena_.address() + arena_.size() - 1 + distance);
    }
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uintptr_t at = arena_.address() + (std::uintptr_t{1} << bit);
      if (at - arena_.address() >= arena_.size()) all.push_back(at);
      const std::uintptr_t below = arena_.address() - (std::uintptr_t{1} << bit);
      all.push_back(below);
    }
    return all;
  }

  Region arena_;
  typename R::Global route_;
};
TYPED_TEST_SUITE(RouteContract, RouteBoxes);

TYPED_TEST(RouteContract, BeforeOpenNothingIsAnywhere) {
  std::vector<std::uintptr_t> all = this->Outside();
  for (std::size_t g = 0; g < this->kGranules; ++g) all.push_back(this->At(g, 100));
  for (std::uintptr_t at : all) {
    EXPECT_EQ(0u, this->Find(at)) << std::hex << at;
    EXPECT_FALSE(TypeParam::covers(this->route_, at)) << std::hex << at;
  }
}

TYPED_TEST(RouteContract, OutsideIsNothing) {
  this->Open();
  for (std::size_t g = 1; g < this->kGranules; ++g)
    TypeParam::bind(this->route_, this->At(g), kGranule, 1, 0);
  for (std::uintptr_t at : this->Outside()) {
    EXPECT_EQ(0u, this->Find(at)) << std::hex << at;
    EXPECT_FALSE(TypeParam::covers(this->route_, at)) << std::hex << at;
  }
  EXPECT_TRUE(TypeParam::covers(this->route_, this->At(0)));
  EXPECT_TRUE(TypeParam::covers(this->route_, this->At(this->kGranules) - 1));
}

TYPED_TEST(RouteContract, BoundPagesTellClassAndOwner) {
  this->Open();
  std::mt19937 random(1);
  for (std::size_t g = 1; g < this->kGranules; ++g) {
    EXPECT_EQ(0u, this->Find(this->At(g))) << "not bound yet";
    const hz::Bin bin = 1 + random() % hz::kHugeBin;
    const unsigned owner = random() % 64;
    TypeParam::bind(this->route_, this->At(g), kGranule, bin, owner);
    for (std::size_t offset :
         {std::size_t{0}, std::size_t{1}, kPage - 1, kPage, 5 * kPage + 8, kGranule - 1}) {
      const auto tag = this->Find(this->At(g, offset));
      ASSERT_NE(0u, tag);
      EXPECT_EQ(bin, TypeParam::bin(tag));
      if (TypeParam::kOwned) {
        EXPECT_EQ(owner, TypeParam::owner(tag));
      }
    }
  }
}

TYPED_TEST(RouteContract, PartsOfASpanAreBoundByThePage) {
  if (TypeParam::kTableBytesPerGranule < hz::kPagesPerGranule)
    GTEST_SKIP() << "its tags are those of granules";
  this->Open();
  TypeParam::bind(this->route_, this->At(5), 3 * kPage, 7, 1);
  TypeParam::bind(this->route_, this->At(5, 3 * kPage), kPage + 1, 7, 1);
  for (std::size_t page = 0; page < hz::kPagesPerGranule; ++page) {
    const bool bound = page < 5;
    EXPECT_EQ(bound, this->Find(this->At(5, page * kPage)) != 0) << page;
    // Of the last page in part, a route may know no more than that part.
    if (page != 4) {
      EXPECT_EQ(bound, this->Find(this->At(5, page * kPage + kPage - 1)) != 0) << page;
    }
  }
  EXPECT_EQ(0u, this->Find(this->At(4, kGranule - 1)));
  EXPECT_EQ(0u, this->Find(this->At(6)));
}

TYPED_TEST(RouteContract, ClearedMeansNothingAndNeighboursStay) {
  this->Open();
  for (std::size_t g = 4; g <= 6; ++g) TypeParam::bind(this->route_, this->At(g), kGranule, 3, 2);
  TypeParam::clear(this->route_, this->At(5), kGranule);
  EXPECT_EQ(0u, this->Find(this->At(5)));
  EXPECT_EQ(0u, this->Find(this->At(5, kGranule - 1)));
  EXPECT_NE(0u, this->Find(this->At(4, kGranule - 1)));
  EXPECT_NE(0u, this->Find(this->At(6)));
}

TYPED_TEST(RouteContract, ANewOwnerReplacesTheOld) {
  this->Open();
  TypeParam::bind(this->route_, this->At(9), kGranule, 3, 2);
  TypeParam::bind(this->route_, this->At(9), kGranule, 3, 5);
  if (TypeParam::kOwned) {
    EXPECT_EQ(5u, TypeParam::owner(this->Find(this->At(9, 100))));
  }
  EXPECT_EQ(3u, TypeParam::bin(this->Find(this->At(9, 100))));
}

TYPED_TEST(RouteContract, WithoutOwnersATagIsItsBin) {
  if (TypeParam::kOwned) GTEST_SKIP() << "there are owners";
  this->Open();
  const typename TypeParam::PerThread anybody{};
  for (hz::Bin bin = 1; bin <= hz::kHugeBin; ++bin) {
    TypeParam::bind(this->route_, this->At(3), kPage, bin, 0);
    EXPECT_EQ(bin, TypeParam::local_bin(this->Find(this->At(3, kGranule - 1)), anybody));
  }
}

TYPED_TEST(RouteContract, OnlyTheOwnersThreadHasALocalBin) {
  if (!TypeParam::kOwned) GTEST_SKIP() << "there are no owners";
  this->Open();
  const auto local = [](hz::Bin bin) { return bin != 0 && bin <= hz::kLastBin; };
  typename TypeParam::PerThread nobody;
  typename TypeParam::PerThread mine;
  typename TypeParam::PerThread other;
  TypeParam::join(mine, 0);
  TypeParam::join(other, 1);
  for (hz::Bin bin = 1; bin <= hz::kHugeBin; ++bin) {
    TypeParam::bind(this->route_, this->At(3), kPage, bin, 0);
    const auto tag = this->Find(this->At(3));
    if (bin <= hz::kLastBin) {
      EXPECT_EQ(bin, TypeParam::local_bin(tag, mine));
    } else {
      EXPECT_FALSE(local(TypeParam::local_bin(tag, mine))) << "huge blocks are nobody's";
    }
    EXPECT_FALSE(local(TypeParam::local_bin(tag, other)));
    EXPECT_FALSE(local(TypeParam::local_bin(tag, nobody)));
  }
  for (const auto* thread : {&nobody, &mine, &other}) EXPECT_FALSE(local(TypeParam::local_bin(0, *thread)));
}

}  // namespace
}  // namespace hz_test
