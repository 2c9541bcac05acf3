// SPDX-License-Identifier: Apache-2.0
//
// For g++'s headers, on musl: a runtime that was built for it knows the C locale alone, and a locale of the
// C library is a number there. Included by <locale> and <iostream>.
#pragma once

#include <clocale>
#include <cstdarg>
#include <cstdio>

#define _GLIBCXX_NUM_CATEGORIES 0

namespace std {

using __c_locale = int*;

inline int __convert_from_v(const __c_locale&, char* out, const int room, const char* format, ...) {
  va_list numbers;
  va_start(numbers, format);
  const int length = vsnprintf(out, static_cast<size_t>(room), format, numbers);
  va_end(numbers);
  return length;
}

}  // namespace std
