// SPDX-License-Identifier: Apache-2.0
//
// Whether this program runs under a sanitizer, or by an emulator of another processor. They map much and keep
// what is freed, so limits of address space and resident memory mean nothing there; ThreadSanitizer knows no
// barrier on all threads.
#pragma once

namespace hz_test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(HZ_TEST_EMULATED)
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

// False in what hz_test_program compiles SHORT for a sanitizer: a heap in there takes several times as long.
#if defined(__OPTIMIZE__)
inline constexpr bool kOptimized = true;
#else
inline constexpr bool kOptimized = false;
#endif

inline constexpr bool kUnderTool = kThreadSanitizer || kAddressSanitizer || kEmulated;

}  // namespace hz_test
