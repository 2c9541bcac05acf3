// SPDX-License-Identifier: Apache-2.0
//
// The calls that tell about the heap and steer it: they must speak of this heap, and speak the truth.
#include <gtest/gtest.h>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/capture.hpp"
#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"

namespace {

using hz_test::kMiB;

constexpr std::size_t kSome = 64 * kMiB;

// Written blocks of mixed sizes, kSome bytes together.
std::vector<void*> MixedBlocks(std::size_t bytes) {
  constexpr std::size_t kSizes[] = {48, 200, 1500, 3000, 9000, 40'000, 65'536, 100'000, 700'000};
  std::vector<void*> blocks;
  for (std::size_t total = 0, i = 0; total < bytes; ++i) {
    const std::size_t size = kSizes[i % std::size(kSizes)];
    blocks.push_back(std::malloc(size));
    hz_test::FillPattern(blocks.back(), size, i);
    total += size;
  }
  return blocks;
}

std::vector<void*> SmallBlocks(std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t total = 0; total < bytes; total += 1024) blocks.push_back(std::malloc(1024));
  return blocks;
}

void FreeAll(std::vector<void*>& blocks) {
  for (void* block : blocks) std::free(block);
  blocks.clear();
}

TEST(Trim, GivesBackAndSaysSo) {
  if (hz_test::HasSeals()) GTEST_SKIP() << "what is free has no pages";
  ASSERT_EQ(1, mallopt(M_TRIM_THRESHOLD, 1 << 30));  // nothing goes back unasked
  const std::size_t empty = hz_test::RssBytes();
  std::vector<void*> blocks = MixedBlocks(kSome);
  const std::size_t full = hz_test::RssBytes();
  ASSERT_GE(full, empty + kSome);
  FreeAll(blocks);
  const std::size_t freed = hz_test::RssBytes();
  EXPECT_EQ(1, malloc_trim(0));
  const std::size_t trimmed = hz_test::RssBytes();
  EXPECT_LT(trimmed + kMiB, freed) << "it said 1";
  EXPECT_LE(trimmed, empty + 4 * kMiB);
}

// Whatever was given back unasked: it says 1 if RSS falls, and 0 if it does not.
TEST(Trim, IsTruthful) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "the C library always says 1";
  std::vector<void*> kept = MixedBlocks(kSome / 2);
  std::vector<void*> blocks = MixedBlocks(kSome);
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = static_cast<std::size_t>(round); i < blocks.size(); i += 4) std::free(blocks[i]);
    const std::size_t before = hz_test::RssBytes();
    const int given_back = malloc_trim(0);
    const std::size_t after = hz_test::RssBytes();
    EXPECT_EQ(given_back == 1, after < before) << before << " -> " << after;
  }
  FreeAll(kept);
}

TEST(Trim, AfterEverythingWasFreedLittleIsLeft) {
  const std::size_t empty = hz_test::RssBytes();
  std::vector<void*> blocks = MixedBlocks(kSome);
  FreeAll(blocks);
  malloc_trim(0);
  EXPECT_LE(hz_test::RssBytes(), empty + 4 * kMiB);
}

TEST(Trim, SaysZeroWhenThereIsNothing) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "the C library says 1";
  std::vector<void*> blocks = MixedBlocks(kSome);
  FreeAll(blocks);
  malloc_trim(0);
  const std::size_t before = hz_test::RssBytes();
  EXPECT_EQ(0, malloc_trim(0));
  EXPECT_EQ(0, malloc_trim(0));
  EXPECT_GE(hz_test::RssBytes() + 64 * 1024, before) << "it said 0";
}

TEST(Trim, LeavesLiveBlocksAlone) {
  std::vector<void*> live;
  for (std::size_t i = 0; i < 2000; ++i) {
    live.push_back(std::malloc(10 + 7 * i));
    hz_test::FillPattern(live.back(), 10 + 7 * i, i);
    std::free(std::malloc(10 + 7 * i));
  }
  malloc_trim(0);
  for (std::size_t i = 0; i < live.size(); ++i) EXPECT_TRUE(hz_test::HasPattern(live[i], 10 + 7 * i, i));
  FreeAll(live);
}

TEST(Mallinfo, CountsWhatIsAllocated) {
  const auto before = mallinfo2();
  std::vector<void*> blocks = MixedBlocks(kSome);
  const auto full = mallinfo2();
  EXPECT_GE(full.uordblks + full.hblkhd, before.uordblks + before.hblkhd + kSome);
  EXPECT_LE(full.uordblks + full.hblkhd, before.uordblks + before.hblkhd + 2 * kSome);
  EXPECT_GE(full.arena + full.hblkhd, kSome) << "what is held covers what is allocated";
  FreeAll(blocks);
  const auto after = mallinfo2();
  EXPECT_LE(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + kSome / 8);
}

TEST(Tell, HugeBlocksStandApart) {
  const auto before = mallinfo2();
  void* blocks[3];
  for (void*& block : blocks) block = std::malloc(std::size_t{40} << 20);
  auto now = mallinfo2();
  EXPECT_EQ(before.hblks + 3, now.hblks);
  EXPECT_GE(now.hblkhd, before.hblkhd + (std::size_t{120} << 20));
  EXPECT_LT(now.hblkhd, before.hblkhd + (std::size_t{121} << 20));
  EXPECT_LT(now.uordblks, before.uordblks + (std::size_t{1} << 20)) << "counted once";
  blocks[0] = std::realloc(blocks[0], std::size_t{80} << 20);
  now = mallinfo2();
  EXPECT_EQ(before.hblks + 3, now.hblks);
  EXPECT_GE(now.hblkhd, before.hblkhd + (std::size_t{160} << 20));
  for (void* block : blocks) std::free(block);
  now = mallinfo2();
  EXPECT_EQ(before.hblks, now.hblks);
  EXPECT_EQ(before.hblkhd, now.hblkhd);
}

TEST(Mallinfo, CountsSmallBlocksAsUsed) {
  const auto before = mallinfo2();
  std::vector<void*> blocks = SmallBlocks(kSome);
  const auto full = mallinfo2();
  EXPECT_GE(full.uordblks, before.uordblks + kSome);
  FreeAll(blocks);
  EXPECT_LE(mallinfo2().uordblks, before.uordblks + kSome / 8);
}

// Whether they are mapped on their own, and so counted in hblkhd, is the heap's affair.
TEST(Mallinfo, CountsHugeBlocks) {
  const auto before = mallinfo2();
  void* block = std::malloc(kSome);
  const auto full = mallinfo2();
  EXPECT_GE(full.uordblks + full.hblkhd, before.uordblks + before.hblkhd + kSome);
  std::free(block);
  const auto after = mallinfo2();
  EXPECT_LE(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + kMiB);
}

TEST(Mallinfo, TheOldFormAgrees) {
  std::vector<void*> blocks = MixedBlocks(kSome);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  const struct mallinfo2 wide = mallinfo2();
  EXPECT_EQ(static_cast<std::size_t>(narrow.uordblks), wide.uordblks);
  EXPECT_EQ(static_cast<std::size_t>(narrow.hblkhd), wide.hblkhd);
  EXPECT_EQ(static_cast<std::size_t>(narrow.arena), wide.arena);
  FreeAll(blocks);
}

std::vector<std::uint64_t> NumbersIn(const std::string& text) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = 0; at < text.size();) {
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    char* end = nullptr;
    numbers.push_back(std::strtoull(text.c_str() + at, &end, 10));
    at = static_cast<std::size_t>(end - text.c_str());
  }
  return numbers;
}

// True if some number of the text grew by about kSome. Texts are matched from their ends: totals stand there.
bool TellsOfSomeMore(const std::string& before, const std::string& after) {
  const std::vector<std::uint64_t> old_numbers = NumbersIn(before);
  const std::vector<std::uint64_t> new_numbers = NumbersIn(after);
  for (std::size_t i = 1; i <= old_numbers.size() && i <= new_numbers.size(); ++i) {
    const std::uint64_t old_number = old_numbers[old_numbers.size() - i];
    const std::uint64_t new_number = new_numbers[new_numbers.size() - i];
    if (new_number >= old_number + kSome && new_number <= old_number + 2 * kSome) return true;
  }
  return false;
}

// Elements nest and close, attributes are quoted, there is one root; gives the root's name, or "" if it is no
// XML.
std::string XmlRoot(const std::string& text) {
  std::vector<std::string> open;
  std::string root;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "";
    std::string tag = text.substr(at + 1, end - at - 1);
    at = end;
    if (tag.empty()) return "";
    if (tag[0] == '?' || tag[0] == '!') continue;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "";
      open.pop_back();
      continue;
    }
    const bool closed = tag.back() == '/';
    if (closed) tag.pop_back();
    std::size_t quotes = 0;
    for (const char c : tag) quotes += c == '"';
    if (quotes % 2 != 0) return "";
    const std::string name = tag.substr(0, tag.find_first_of(" \t\n"));
    if (open.empty()) {
      if (!root.empty()) return "";
      root = name;
    }
    if (!closed) open.push_back(name);
  }
  return open.empty() ? root : "";
}

std::string MallocInfo(int options, int* result) {
  char* text = nullptr;
  std::size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  *result = malloc_info(options, stream);
  std::fclose(stream);
  std::string copy(text, size);
  std::free(text);
  return copy;
}

TEST(MallocInfo, IsXmlAboutThisHeap) {
  int result = -1;
  const std::string before = MallocInfo(0, &result);
  EXPECT_EQ(0, result);
  EXPECT_EQ("malloc", XmlRoot(before)) << before;
  EXPECT_NE(std::string::npos, before.find("<malloc version=\"")) << before;
  std::vector<void*> blocks = SmallBlocks(kSome);
  const std::string full = MallocInfo(0, &result);
  EXPECT_EQ(0, result);
  EXPECT_EQ("malloc", XmlRoot(full)) << full;
  EXPECT_TRUE(TellsOfSomeMore(before, full)) << before << full;
  FreeAll(blocks);
}

TEST(MallocInfo, RefusesOptions) {
  for (const int options : {1, -1, 42}) {
    char* text = nullptr;
    std::size_t size = 0;
    FILE* stream = open_memstream(&text, &size);
    // The C library returns EINVAL; a refusal may also be -1 with errno.
    errno = 0;
    const int result = malloc_info(options, stream);
    std::fclose(stream);
    EXPECT_TRUE(result == EINVAL || (result == -1 && errno == EINVAL)) << result;
    EXPECT_EQ(0u, size);
    std::free(text);
  }
}

TEST(MallocStats, TellsOfThisHeapOnStderr) {
  std::string before;
  {
    hz_test::Capture capture;
    malloc_stats();
    before = capture.Text();
  }
  EXPECT_FALSE(before.empty());
  std::vector<void*> blocks = SmallBlocks(kSome);
  hz_test::Capture capture;
  malloc_stats();
  const std::string full = capture.Text();
  EXPECT_TRUE(TellsOfSomeMore(before, full)) << before << full;
  FreeAll(blocks);
}

// Programs end where mallopt refuses: glibc's own tests do.
TEST(Mallopt, TakesWhatTheCLibraryTakes) {
  for (const int parameter : {M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX,
                              M_ARENA_TEST, M_MXFAST, M_CHECK_ACTION, M_PERTURB}) {
    EXPECT_EQ(1, mallopt(parameter, 64)) << parameter;
  }
  EXPECT_EQ(1, mallopt(M_TRIM_THRESHOLD, -1));
}

TEST(Mallopt, RefusesWhatNobodyKnows) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "the C library takes anything";
  EXPECT_EQ(0, mallopt(12345, 1));
  EXPECT_EQ(0, mallopt(-12345, 1));
}

// The one that has a counterpart has an effect: below it nothing is given back, until it is asked for. -1 is
// without bound, and what is no threshold leaves it as it is.
void ExpectKept(int threshold) {
  if (hz_test::HasSeals()) GTEST_SKIP() << "what is free has no pages";
  ASSERT_EQ(1, mallopt(M_TRIM_THRESHOLD, threshold));
  ASSERT_EQ(1, mallopt(M_TOP_PAD, 4096));
  const std::size_t empty = hz_test::RssBytes();
  std::vector<void*> blocks = SmallBlocks(kSome);
  for (void* block : blocks) hz_test::FillPattern(block, 1024, 1);
  FreeAll(blocks);
  EXPECT_GE(hz_test::RssBytes(), empty + kSome * 3 / 4);
  EXPECT_EQ(1, malloc_trim(0));
  EXPECT_LE(hz_test::RssBytes(), empty + 4 * kMiB);
}
TEST(Mallopt, TrimThresholdIsKept) { ExpectKept(1 << 30); }
TEST(Mallopt, ThresholdWithoutBoundIsKept) { ExpectKept(-1); }

}  // namespace
