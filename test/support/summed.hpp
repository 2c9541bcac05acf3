// SPDX-License-Identifier: Apache-2.0
//
// A text of a size profile with the sum behind it that heap/settings/profile.cpp asks for (FNV-1a). For tests
// that make or change one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace hz_test {

inline std::string Summed(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char hex[32];
  std::snprintf(hex, sizeof hex, "sum %llx\n", static_cast<unsigned long long>(sum));
  return text + hex;
}

}  // namespace hz_test
