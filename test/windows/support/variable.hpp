// SPDX-License-Identifier: Apache-2.0
//
// Variables of this process's environment, on Windows: those of the C library's copy follow.
#pragma once

#include <windows.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace hz_test {

inline constexpr std::size_t kLongestVariable = 30'000;  // a variable has at most 32,767 characters

// nullptr: none. The C library takes an empty value for none.
inline void SetVariable(const char* name, const char* value) {
  _putenv((std::string(name) + "=" + (value == nullptr ? "" : value)).c_str());
  if (value != nullptr && *value == 0) SetEnvironmentVariableA(name, value);
}

}  // namespace hz_test
