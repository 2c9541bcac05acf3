// SPDX-License-Identifier: Apache-2.0
//
// What emulated_pages.cpp counts. Called by pages_test.cpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace hz_test {

extern std::atomic<std::uint64_t> emulated_calls;  // that came by the emulated functions
extern std::atomic<std::uint64_t> refused_calls;   // of these, that were not in whole pages

}  // namespace hz_test
