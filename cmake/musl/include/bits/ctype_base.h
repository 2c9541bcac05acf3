// SPDX-License-Identifier: Apache-2.0
//
// For g++'s headers, on musl: the classes of characters are bits of the runtime's own, not those of glibc's
// tables. Included by <locale> and <iostream>.
#pragma once

namespace std {

struct ctype_base {
  using __to_type = const int*;
  using mask = unsigned;
  static constexpr mask upper = 1U << 0, lower = 1U << 1, alpha = 1U << 2, digit = 1U << 3, xdigit = 1U << 4;
  static constexpr mask space = 1U << 5, print = 1U << 6, cntrl = 1U << 8, punct = 1U << 9, blank = 1U << 10;
  static constexpr mask alnum = alpha | digit, graph = alnum | punct;
};

}  // namespace std
