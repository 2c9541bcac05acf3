// SPDX-License-Identifier: Apache-2.0
//
// Which allocator serves this process, asked by name at run time, so that one test binary runs under every
// line. HZ_TEST_LINE names the line that must be there. The word `libc` runs the tests against the C library
// instead, where nothing is asked of hz_*: it shows that a test is right before it is held against us.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "support/symbols.hpp"

namespace hz_test {

inline std::string ExpectedLine() {
  const char* name = std::getenv("HZ_TEST_LINE");
  return name == nullptr ? std::string() : std::string(name);
}

inline bool OnLibc() {
  const char* name = std::getenv("HZ_TEST_LINE");
  return name != nullptr && std::strcmp(name, "libc") == 0;
}

// Whether the line seals its blocks: they have what was asked for and no more, in a class of its own choice,
// and what is large lies between pages that nobody may touch.
inline bool HasSeals() { return ExpectedLine() == "secure"; }

// Whether the line keeps the state of each slot apart from it, and looks there at each free.
inline bool ProvesEveryFree() {
  return ExpectedLine() == "hz5" || ExpectedLine() == "hz6" || ExpectedLine() == "hz8" || HasSeals();
}

// Whether the line keeps nothing in free slots: then a write after free hurts nothing, and is not seen.
inline bool KeepsNothingInSlots() {
  return ExpectedLine() == "hakozuna" || ExpectedLine() == "hz4" || ExpectedLine() == "hz7" ||
         (ProvesEveryFree() && !HasSeals());
}

// Whether the line sees a second free that does not follow the first only when the slots return to their
// span.
inline bool SeesSecondFreesLate() { return ExpectedLine() == "hakozuna" || ExpectedLine() == "hz4"; }

// Whether the line keeps so little that a limit on what is kept changes nothing.
inline bool KeepsLittle() { return ExpectedLine() == "hz7" || ExpectedLine() == "hz8"; }

// The same of a line that gives back what it kept within a few milliseconds.
inline bool PurgesPromptly() { return KeepsLittle() || ExpectedLine() == "hz5" || ExpectedLine() == "hz6"; }

// Whether the line is the tiny one: no thread caches anything, so no thread of ours takes caches back, and
// what grows is copied.
inline bool IsTiny() { return ExpectedLine() == "hz7"; }

inline std::string ServingLine() {
  auto* line = FindFunction<const char*()>("hz_line");
  return line == nullptr ? std::string("none") : std::string(line());
}

// True if `block` is a block of the heap under test.
inline bool Owned(const void* block) {
  if (OnLibc()) return block != nullptr;
  static auto* const owns = FindFunction<int(const void*)>("hz_owns");
  return owns != nullptr && owns(block) == 1;
}

// True if `function` comes from the object that hz_line comes from.
inline bool ServedByUs(const char* function) {
  if (OnLibc()) return FindFunction<void()>(function) != nullptr;
  void* object = ObjectOf(function);
  return object != nullptr && object == ObjectOf("hz_line");
}

// Runs before the first test of a binary: the rest means nothing unless the expected line serves it.
class LineEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_FALSE(ExpectedLine().empty()) << "HZ_TEST_LINE must name the line that serves this test";
    if (OnLibc()) return;
    ASSERT_EQ(ExpectedLine(), ServingLine());
    void* block = std::malloc(100);
    ASSERT_TRUE(Owned(block)) << "malloc is not ours";
    std::free(block);
  }
};

}  // namespace hz_test
