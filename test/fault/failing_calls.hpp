// SPDX-License-Identifier: Apache-2.0
//
// Makes the calls of the heap to the system fail on purpose: the program is linked so that the system calls
// of src/os, and what it asks of the C library, go through here (--wrap), and each fails as it would there.
// Their own calls do not, nor what a test calls in its own name (TestsOwn). Called by the tests of failing
// calls; costs a counter a call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hz_test::failing {

enum class Mode : unsigned { kNone, kOnce, kFrom, kSometimes };

// One bit a kind of call.
constexpr unsigned kMap = 1, kUnmap = 2, kProtect = 4, kMove = 8, kAdvise = 16, kMemory = 31;
constexpr unsigned kBarrier = 32;   // membarrier
constexpr unsigned kWait = 64;      // a futex: it is as if somebody had woken it, or a signal come
constexpr unsigned kMachine = 128;  // what is asked of machine and process, and the names of mappings
constexpr unsigned kThread = 256;   // a thread of ours, and what it needs
constexpr unsigned kHook = 512;     // at a thread's end, at a fork, at SIGTERM
constexpr unsigned kFile = 1024;
constexpr unsigned kSocket = 2048;
constexpr unsigned kKinds = 12, kAllCalls = (1U << kKinds) - 1;
constexpr unsigned kProcessor = 1U << kKinds;  // which one: asked so often that it is no point of its own
constexpr const char* kNames[kKinds] = {"map",  "unmap",   "protect", "move", "advise", "barrier",
                                        "wait", "machine", "thread",  "hook", "file",   "socket"};

void None();
// The call of that number fails, counted from now, from 1.
void Once(std::uint64_t call, unsigned which_calls = kMemory);
void From(std::uint64_t call, unsigned which_calls = kMemory);  // it and all that follow
void Sometimes(unsigned one_in, unsigned which_calls);          // at random
std::uint64_t Calls();                                          // since then
std::uint64_t Failures();
void Forget();  // those so far
// Before main: HZ_TEST_FAIL="once 7" or "from 7" in the environment, of all calls. Whether it says so.
bool StartedToFail();
// HZ_TEST_RESERVED in the environment: no place that the heap asks for is to be had, so that it reserves a
// range.

bool Fails(unsigned call);  // for the calls themselves: whether this one, of that kind, is to fail

// What several processes met, in memory that they share: the open file HZ_TEST_SEEN. Each adds what failed in
// it.
struct Seen {
  std::atomic<unsigned> of_kind[kKinds];

  static Seen* Shared(int file);
  void Note();
};

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
