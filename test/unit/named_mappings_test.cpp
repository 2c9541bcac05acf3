// SPDX-License-Identifier: Apache-2.0
//
// Names of mappings: what the kernel is asked for, and how often, seen by a prctl of the test's own that
// answers as the test wants; and what a kernel that has them shows.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz_test {
namespace {

namespace os = hz::os;
constexpr int kErrno = 12345;
constexpr int kSetVma = 0x53564d41;  // PR_SET_VMA, which old headers have not
constexpr std::size_t kBytes = 4 * hz::kGranule;

struct Asked {
  void* at;
  std::size_t bytes;
  std::string name;
  bool operator==(const Asked& other) const = default;
};
std::vector<Asked> asked;
enum class Answer { kYes, kTheKernels, kUnknown, kNoMemory } answer = Answer::kYes;

}  // namespace
}  // namespace hz_test

extern "C" long __real_hz_system_call(long number, long a, long b, long c, long d, long e, long f);

// In place of our system calls.
extern "C" long __wrap_hz_system_call(long number, long a, long b, long c, long d, long e, long f) {
  using namespace hz_test;
  if (number == SYS_prctl && a == kSetVma) {
    asked.push_back(
        {reinterpret_cast<void*>(c), static_cast<std::size_t>(d), reinterpret_cast<const char*>(e)});
    if (answer == Answer::kYes) return 0;
    if (answer != Answer::kTheKernels) return answer == Answer::kUnknown ? -EINVAL : -ENOMEM;
  }
  return __real_hz_system_call(number, a, b, c, d, e, f);
}

namespace hz_test {
namespace {

class NamedMappings : public ::testing::Test {
 protected:
  NamedMappings() { asked.clear(); }
  ~NamedMappings() override {
    os::name_mappings(false);
    for (void* at : mapped_) os::unmap(at, kBytes);
  }
  std::byte* Keep(void* at) {
    EXPECT_NE(nullptr, at);
    mapped_.push_back(at);
    return static_cast<std::byte*>(at);
  }
  std::byte* Mapped(os::Use use) { return Keep(os::map(kBytes, hz::kGranule, use)); }

  std::vector<void*> mapped_;
};

TEST_F(NamedMappings, NothingIsAskedForUnlessItIsWanted) {
  Mapped(os::Use::kBlocks);
  Mapped(os::Use::kTables);
  EXPECT_TRUE(asked.empty());
}

TEST_F(NamedMappings, EachIsAskedForOnceAsAWhole) {
  answer = Answer::kYes;
  os::name_mappings(true);
  errno = kErrno;
  void* const tables = Mapped(os::Use::kTables);
  std::byte* const blocks = Mapped(os::Use::kBlocks);
  void* const range = Keep(os::reserve(kBytes, hz::kGranule));
  void* const one = blocks + hz::kGranule;
  EXPECT_TRUE(os::remap_fresh(one, hz::kGranule));
  os::unmap(blocks + 3 * hz::kGranule, hz::kGranule);
  os::unmap(blocks + 2 * hz::kGranule, hz::kGranule);
  EXPECT_EQ(os::Placed::kHere, os::extend(blocks + 2 * hz::kGranule, hz::kGranule));
  EXPECT_EQ(os::Placed::kHere, os::extend(blocks + 3 * hz::kGranule, hz::kGranule, os::Use::kReading));
  EXPECT_EQ(os::Placed::kTaken, os::extend(one, hz::kGranule)) << "and nothing is asked for";
  EXPECT_EQ(kErrno, errno);
  const std::vector<Asked> expected = {{tables, kBytes, "hakozuna tables"},
                                       {blocks, kBytes, "hakozuna"},
                                       {range, kBytes, "hakozuna"},
                                       {one, hz::kGranule, "hakozuna"},
                                       {blocks + 2 * hz::kGranule, hz::kGranule, "hakozuna"},
                                       {blocks + 3 * hz::kGranule, hz::kGranule, "hakozuna tables"}};
  EXPECT_EQ(expected.size(), asked.size());
  EXPECT_TRUE(expected == asked);
}

TEST_F(NamedMappings, AKernelThatHasNoneIsAskedOnce) {
  answer = Answer::kUnknown;
  os::name_mappings(true);
  errno = kErrno;
  for (int i = 0; i < 3; ++i) Mapped(os::Use::kTables);
  EXPECT_EQ(1u, asked.size());
  EXPECT_EQ(kErrno, errno);
}

TEST_F(NamedMappings, OneThatHasNoMemoryIsAskedAgain) {
  answer = Answer::kNoMemory;
  os::name_mappings(true);
  errno = kErrno;
  for (int i = 0; i < 3; ++i) Mapped(os::Use::kTables);
  EXPECT_EQ(3u, asked.size());
  EXPECT_EQ(kErrno, errno);
}

// The mappings that lie in a range, as the kernel shows them: their names.
std::vector<std::string> Shown(const void* at, std::size_t bytes) {
  std::vector<std::string> names;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) != 2) continue;
    if (begin >= hz::address(at) + bytes || end <= hz::address(at)) continue;
    const std::size_t name = line.find('[');
    names.push_back(name == std::string::npos ? "" : line.substr(name));
  }
  return names;
}

TEST_F(NamedMappings, AreShownAndDoNotMultiply) {
  answer = Answer::kTheKernels;
  os::name_mappings(true);
  std::byte* const at = Mapped(os::Use::kBlocks);
  if (Shown(at, kBytes) != std::vector<std::string>{"[anon:hakozuna]"})
    GTEST_SKIP() << "this kernel has none (CONFIG_ANON_VMA_NAME)";
  for (std::size_t i = 0; i < 4; ++i) at[i * hz::kGranule] = std::byte{1};
  EXPECT_TRUE(os::remap_fresh(at + hz::kGranule, hz::kGranule));
  EXPECT_EQ(std::vector<std::string>{"[anon:hakozuna]"}, Shown(at, kBytes)) << "remapped within";
  os::unmap(at + 2 * hz::kGranule, 2 * hz::kGranule);
  EXPECT_EQ(os::Placed::kHere, os::extend(at + 2 * hz::kGranule, hz::kGranule));
  EXPECT_EQ(os::Placed::kHere, os::extend(at + 3 * hz::kGranule, hz::kGranule));
  EXPECT_EQ(std::vector<std::string>{"[anon:hakozuna]"}, Shown(at, kBytes)) << "extended twice";
  EXPECT_TRUE(os::purge(at, kBytes));
  EXPECT_EQ(std::vector<std::string>{"[anon:hakozuna]"}, Shown(at, kBytes)) << "purged";
  EXPECT_EQ(std::vector<std::string>{"[anon:hakozuna tables]"}, Shown(Mapped(os::Use::kTables), kBytes));

  std::byte* const range = Keep(os::reserve(kBytes, hz::kGranule));
  EXPECT_TRUE(os::commit(range, hz::kGranule));
  EXPECT_TRUE(os::commit(range + hz::kGranule, hz::kGranule));
  EXPECT_EQ((std::vector<std::string>{"[anon:hakozuna]", "[anon:hakozuna]"}), Shown(range, kBytes))
      << "what can be used, and what is reserved";
}

}  // namespace
}  // namespace hz_test
