// SPDX-License-Identifier: Apache-2.0
//
// The calls of heap_api.hpp's heap that only these tests need, and the rule for all of them: a failure is
// NULL and ENOMEM, which posix_memalign returns as well. Where the direct API has no counterpart, the nearest
// stands in. Called by the walk.
#pragma once

#include <cerrno>
#include <new>

#include "support/heap_api.hpp"

namespace hz_test {

// Lives while this thread calls the system in a test's own name: that is none of the heap's calls, which fail
// (failing_calls.hpp).
struct TestsOwn {
  TestsOwn() { is = true; }
  ~TestsOwn() { is = false; }
  TestsOwn(const TestsOwn&) = delete;
  TestsOwn& operator=(const TestsOwn&) = delete;

  static inline thread_local bool is = false;
};

// What a call gave, and whether it failed as it should.
struct Answer {
  void* block = nullptr;
  bool proper = true;
};

// Runs `call` with an errno that no call sets.
template <class Call>
Answer Ask(Call call) {
  constexpr int kUntouched = ENOTNAM;
  errno = kUntouched;
  Answer answer;
  answer.block = call();
  answer.proper = answer.block != nullptr || errno == ENOMEM;
  return answer;
}

namespace api {

#ifdef HZ_TEST_DIRECT
inline void* ReallocArray(void* p, std::size_t n, std::size_t size) { return Realloc(p, n * size); }
#else
inline void* ReallocArray(void* p, std::size_t n, std::size_t size) {
  return Opaque(reallocarray(Opaque(p), Opaque(n), Opaque(size)));
}
#endif

}  // namespace api

#ifdef HZ_TEST_DIRECT
inline Answer PosixMemalign(std::size_t alignment, std::size_t size) {
  return Ask([=] { return api::AlignedAlloc(alignment, size); });
}
inline Answer New(std::size_t size, bool) {
  return Ask([=] { return api::Malloc(size); });
}
#else
inline Answer PosixMemalign(std::size_t alignment, std::size_t size) {
  constexpr int kUntouched = ENOTNAM;
  char canary = 0;
  void* out = &canary;
  errno = kUntouched;
  const int result = posix_memalign(&out, Opaque(alignment), Opaque(size));
  if (result == 0) return {Opaque(out), true};
  return {nullptr, result == ENOMEM && errno == ENOMEM && out == &canary};
}
// Throwing new says bad_alloc, nothrow new says null.
inline Answer New(std::size_t size, bool throwing) {
  if (!throwing) return {Opaque(::operator new(Opaque(size), std::nothrow)), true};
  try {
    void* block = Opaque(::operator new(Opaque(size)));
    return {block, block != nullptr};
  } catch (const std::bad_alloc&) {
    return {};
  }
}
#endif

}  // namespace hz_test
