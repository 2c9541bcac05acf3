// SPDX-License-Identifier: Apache-2.0
//
// One line of text for stderr, built on the stack and written with one call; used by reports and statistics, where
// stdio might allocate. What does not fit is cut off.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/os.hpp"

namespace hz::os {

class Message {
 public:
  Message& text(const char* s) {
    while (*s != 0) put(*s++);
    return *this;
  }
  // Up to the first blank: the value of a key=value pair has none.
  Message& word(const char* s) {
    while (*s != 0 && *s != ' ') put(*s++);
    return *this;
  }
  Message& decimal(std::uint64_t n) { return number(n, 10); }
  Message& hex(std::uint64_t n) { return number(n, 16); }

  void send() { write_error(buffer_, length_); }

 private:
  void put(char c) {
    if (length_ < sizeof buffer_) buffer_[length_++] = c;
  }
  Message& number(std::uint64_t n, unsigned base) {
    char digits[20];
    unsigned count = 0;
    do {
      digits[count++] = "0123456789abcdef"[n % base];
      n /= base;
    } while (n != 0);
    while (count != 0) put(digits[--count]);
    return *this;
  }

  std::size_t length_ = 0;
  char buffer_[1600];
};

}  // namespace hz::os
