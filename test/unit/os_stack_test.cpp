// SPDX-License-Identifier: Apache-2.0
//
// Stacks and code, as the system tells of them, and files that are written in pieces.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "base/units.hpp"
#include "os/lock.hpp"
#include "os/os.hpp"
#include "support/opaque.hpp"

namespace hz_test {
namespace {

constexpr std::uintptr_t kLongest = 4096;

struct Stack {
  void* frames[64];
  unsigned count;
};
__attribute__((noinline)) void Walk(Stack& stack) {
  stack.count = hz::os::walk_stack(stack.frames, 64);
  Opaque(&stack);
}
__attribute__((noinline)) void CallWalk(Stack& stack) {
  Walk(stack);
  Opaque(&stack);
}

bool IsIn(const void* at, void (*function)(Stack&)) {
  const auto start = reinterpret_cast<std::uintptr_t>(function);
  return hz::address(at) > start && hz::address(at) < start + kLongest;
}

TEST(OsStack, IsWalkedFromTheInnermostFrame) {
  ASSERT_TRUE(hz::os::prepare_to_walk());
  Stack stack;
  CallWalk(stack);
  ASSERT_GE(stack.count, 3u);
  unsigned at = 0;
  while (at < stack.count && !IsIn(stack.frames[at], &CallWalk)) ++at;
  EXPECT_LT(at, 4u) << "the caller is one of the first";
  EXPECT_EQ(2u, hz::os::walk_stack(stack.frames, 2)) << "no more than there is room for";
}

TEST(OsStack, OurCodeIsTheProgramsHere) {
  const hz::os::Code code = hz::os::own_code();
  EXPECT_EQ(code.begin, code.end);
}

TEST(OsCode, IsInAMapping) {
  char room[hz::os::CodeMappings::kRoom];
  hz::os::CodeMappings mappings(room);
  std::size_t length = 0;
  unsigned lines = 0, ours = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&CallWalk);
  while (const char* line = mappings.next(length)) {
    ++lines;
    unsigned long long start = 0, end = 0;
    ASSERT_EQ(2, std::sscanf(std::string(line, length).c_str(), "%llx-%llx", &start, &end));
    ours += start <= here && here < end ? 1 : 0;
  }
  if (lines == 0) GTEST_SKIP() << "this system tells nothing";
  EXPECT_EQ(1u, ours);
  EXPECT_EQ(nullptr, mappings.next(length));
}

TEST(OsProgram, HasAPathThatEndsInItsName) {
  char path[1000];
  const std::size_t bytes = hz::os::program_path(path, sizeof path);
  ASSERT_NE(0u, bytes);
  const std::string text(path, bytes), name = hz::os::program_name();
  ASSERT_GE(text.size(), name.size());
  EXPECT_EQ(name, text.substr(text.size() - name.size()));
}

TEST(OsClock, UnixSecondsAreOfThisCentury) {
  EXPECT_GT(hz::os::unix_seconds(), 1'700'000'000u);
  EXPECT_LT(hz::os::unix_seconds(), 4'200'000'000u);
}

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(OsOutput, TakesThePlaceOfWhatWasThereAtLast) {
  constexpr auto kFile = hz::os::File::kHeapProfile;
  const std::string path = ::testing::TempDir() + "hz_output";
  std::ofstream(path) << "the old one";
  hz::os::Output output(kFile, path.c_str());
  output.write("one ", 4);
  output.write("two", 3);
  EXPECT_EQ("the old one", Contents(path));
  EXPECT_TRUE(output.finish());
  EXPECT_EQ("one two", Contents(path));
  hz::os::Output shorter(kFile, path.c_str());
  EXPECT_TRUE(shorter.finish());
  EXPECT_EQ("", Contents(path));
  std::remove(path.c_str());
  for (const char* nowhere : {"/no/such/folder/file", ""}) {
    hz::os::Output refused(kFile, nowhere);
    refused.write("x", 1);
    EXPECT_FALSE(refused.finish()) << nowhere;
  }
}

TEST(OsTurn, IsOnesAtATime) {
  hz::os::Turn turn;
  {
    const hz::os::Turn::Mine first(turn), second(turn);
    EXPECT_TRUE(first.is());
    EXPECT_FALSE(second.is());
  }
  EXPECT_TRUE(hz::os::Turn::Mine(turn).is());
}

}  // namespace
}  // namespace hz_test
