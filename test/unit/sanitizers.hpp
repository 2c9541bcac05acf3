// SPDX-License-Identifier: Apache-2.0
//
// Whether this program runs under AddressSanitizer or ThreadSanitizer: they map terabytes and keep what is freed, so
// limits of address space and resident memory mean nothing there.
#pragma once

namespace hz_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace hz_test
