// SPDX-License-Identifier: Apache-2.0
//
// What differs between compilers and builds, in one place. Everything else in src/ uses `if constexpr` on the
// constants defined here. Costs nothing.
#pragma once

#define HZ_INLINE inline __attribute__((always_inline))
#define HZ_ALWAYS_INLINE __attribute__((always_inline))  // of a lambda
// A slow path: never inlined, so that the fast path that tail-calls it needs no frame.
#define HZ_SLOW __attribute__((noinline))
#define HZ_COLD __attribute__((noinline, cold))
#define HZ_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define HZ_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define HZ_EXPORT extern "C" __attribute__((visibility("default")))

// A function that only runs where has_wide_lanes() says so, and a part of one.
#if defined(__x86_64__)
#include <cpuid.h>
#define HZ_WIDE __attribute__((noinline, target("avx2")))
#define HZ_WIDE_INLINE inline __attribute__((always_inline, target("avx2")))
#else
#define HZ_WIDE __attribute__((noinline))
#define HZ_WIDE_INLINE HZ_INLINE
#endif

// The object that describes the heap to readers from outside. It is kept, among the variables of a file with
// code.
#if defined(__linux__)
#define HZ_DESCRIPTION __attribute__((used, retain, section(".hakozuna")))
#else
#define HZ_DESCRIPTION __attribute__((used))
#endif

#if defined(__SANITIZE_THREAD__)
#define HZ_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HZ_TSAN 1
#endif
#endif

namespace hz {

#if defined(HZ_DEBUG) && HZ_DEBUG
inline constexpr bool kDebug = true;
inline constexpr const char* kBuildKind = "debug";
#else
inline constexpr bool kDebug = false;
inline constexpr const char* kBuildKind = "release";
#endif

#if defined(HZ_TSAN)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__clang__)
inline constexpr const char* kCompiler = "clang-" __clang_version__;
#else
inline constexpr const char* kCompiler = "gcc-" __VERSION__;
#endif

// Tell the core that we spin.
HZ_INLINE void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Whether the processor has vectors of 32 bytes, and the system keeps them for each thread.
inline bool has_wide_lanes() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) return false;
  unsigned kept = 0, more = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(more) : "c"(0));
  constexpr unsigned kVectors = 6;
  return (kept & kVectors) == kVectors && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_AVX2) != 0;
#else
  return false;
#endif
}

// Decrements in memory; whether the result is negative: one instruction and a jump, where clang 14 makes five
// and gcc 12 computes the address apart.
HZ_INLINE bool decrement_below_zero(int& value) {
#if defined(__x86_64__)
  bool negative;
  __asm__("subl $1, %0" : "+m"(value), "=@ccs"(negative));
  return negative;
#else
  return --value < 0;
#endif
}

// The same value, which the compiler must not recognise: or it shares an address between the hot path and a
// cold one, at the price of an instruction on the hot one.
template <class T>
HZ_INLINE T apart(T value) {
  __asm__("" : "+r"(value));
  return value;
}

// Behind a call on a cold path at the end of a function: the call is not made a jump. Of two ways out clang
// 14 takes the first instruction of the epilogue before the branch, and does not say so in its unwind tables:
// a profiler that walks the stack just there reads wild (test/life/unwinding_test.cpp).
HZ_INLINE void no_tail_call() { __asm__ volatile(""); }

// An invariant of ours, not of the caller: checked in debug builds only.
HZ_INLINE void check(bool holds) {
  if constexpr (kDebug) {
    if (!holds) __builtin_trap();
  }
}

}  // namespace hz
