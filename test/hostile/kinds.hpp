// SPDX-License-Identifier: Apache-2.0
//
// The corpus of hostile programs: a row for each family of mistakes and attacks, three sizes a row where the
// size matters. hostile.cpp commits one kind a process and compares what came of it with what stands here.
#pragma once

#include <cstddef>

namespace hz_test {

// What a kind found out itself, if it got that far.
enum class End {
  kUnseen,   // it did what it wanted to do
  kThwarted  // nothing stopped it, and it got nothing: no secret, no address, no memory
};

inline constexpr std::size_t kSizes[] = {8, 4096, 256 * 1024};
inline constexpr const char* kSizeNames[] = {"small", "medium", "large"};

// How it may end, alternatives with a bar between them: a code as in "E03", with "@exit" if it is told when
// the program has ended; SEGV; "thwarted"; "none"; "*" is anything. By size; of one that is empty the one
// before counts.
struct Expected {
  const char* of[3];
};

struct Family {
  const char* name;
  End (*commit)(std::size_t size);
  unsigned sizes;  // 3, or 1 where the size does not matter
  // Public suites have such a kind, at these sizes; they take it for found if the program did not get to its
  // end, or was thwarted.
  bool is_public;
  bool is_bad_free;  // a double free or an invalid one
  Expected secure, plain;
};

extern const Family kFamilies[];
extern const std::size_t kFamilyCount;

}  // namespace hz_test
