// SPDX-License-Identifier: Apache-2.0
//
// Makes the system calls of the heap fail on purpose: the program is linked so that its mmap, munmap,
// mprotect, mremap and madvise go through here (--wrap), and each fails as the kernel would. The C library's
// own calls do not. Called by the tests of failing calls; costs a counter a call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hz_test::failing {

enum class Mode : unsigned { kNone, kOnce, kFrom, kSometimes };

// One bit a call.
constexpr unsigned kMap = 1, kUnmap = 2, kProtect = 4, kMove = 8, kAdvise = 16, kAllCalls = 31;

void None();
void Once(std::uint64_t call);  // the call of that number fails, counted from now, from 1
void From(std::uint64_t call);  // it and all that follow
void Sometimes(unsigned one_in, unsigned which_calls);  // at random
std::uint64_t Calls();                                  // since then
std::uint64_t Failures();

// From now on every move to a fixed place unmaps it, as the kernel may, and fails; before it returns,
// somebody else maps a page of the hole, at that offset or as far from its end, and fills it. Where; null
// before.
void Squat(std::size_t offset, bool from_end);
const void* Squatted();
// From now on every longer move to a fixed place stops after so many bytes, as the kernel may between two
// mappings: they are there, the rest is where it was, and its place is a hole.
void StopMovesAfter(std::size_t bytes);
constexpr unsigned char kSquatter = 0xA5;
constexpr std::size_t kSquattedBytes = 4096;

}  // namespace hz_test::failing
