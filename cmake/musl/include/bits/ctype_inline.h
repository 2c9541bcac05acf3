// SPDX-License-Identifier: Apache-2.0
//
// For g++'s headers, on musl: there is no table of classes, the C library is asked about each character.
// Included by <locale> and <iostream>.
#pragma once

#include <cctype>

namespace std {

inline bool ctype<char>::is(mask classes, char c) const {
  const int of = static_cast<unsigned char>(c);
  return ((classes & upper) != 0 && isupper(of)) || ((classes & lower) != 0 && islower(of)) ||
         ((classes & alpha) != 0 && isalpha(of)) || ((classes & digit) != 0 && isdigit(of)) ||
         ((classes & xdigit) != 0 && isxdigit(of)) || ((classes & space) != 0 && isspace(of)) ||
         ((classes & print) != 0 && isprint(of)) || ((classes & cntrl) != 0 && iscntrl(of)) ||
         ((classes & punct) != 0 && ispunct(of)) || ((classes & blank) != 0 && isblank(of));
}

inline const char* ctype<char>::is(const char* low, const char* high, mask* out) const {
  for (; low < high; ++low, ++out) {
    *out = 0;
    for (mask one = upper; one <= blank; one <<= 1) *out |= is(one, *low) ? one : 0;
  }
  return high;
}

inline const char* ctype<char>::scan_is(mask classes, const char* low, const char* high) const {
  while (low < high && !is(classes, *low)) ++low;
  return low;
}

inline const char* ctype<char>::scan_not(mask classes, const char* low, const char* high) const {
  while (low < high && is(classes, *low)) ++low;
  return low;
}

}  // namespace std
