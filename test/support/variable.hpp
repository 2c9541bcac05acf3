// SPDX-License-Identifier: Apache-2.0
//
// Variables of this process's environment.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace hz_test {

inline constexpr std::size_t kLongestVariable = 100'000;

// nullptr: none.
inline void SetVariable(const char* name, const char* value) {
  value == nullptr ? unsetenv(name) : setenv(name, value, 1);
}

}  // namespace hz_test
