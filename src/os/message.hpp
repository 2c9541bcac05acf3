// SPDX-License-Identifier: Apache-2.0
//
// One line of text for stderr, built on the stack and written with one call; used by reports and statistics,
// where stdio might allocate. What does not fit is cut off.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/os.hpp"

namespace hz::os {

template <std::size_t kMost>
class BasicMessage {
 public:
  BasicMessage& text(const char* s) {
    while (*s != 0) put(*s++);
    return *this;
  }
  BasicMessage& part(const char* s, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) put(s[i]);
    return *this;
  }
  // Up to the first blank: the value of a key=value pair has none.
  BasicMessage& word(const char* s) {
    while (*s != 0 && *s != ' ') put(*s++);
    return *this;
  }
  // As one word of plain letters, for a line that others take apart.
  BasicMessage& name(const char* s) {
    for (; *s != 0; ++s) put(*s > ' ' && *s <= '~' && *s != '"' && *s != '\\' ? *s : '_');
    return *this;
  }
  BasicMessage& decimal(std::uint64_t n) { return number(n, 10); }
  BasicMessage& hex(std::uint64_t n) { return number(n, 16); }

  void clear() { length_ = 0; }
  char* space() { return buffer_; }  // for whoever writes there himself
  const char* data() const { return buffer_; }
  std::size_t size() const { return length_; }
  void send() { write_error(buffer_, length_); }
  void send_as_statistics() { write_statistics(buffer_, length_); }

 private:
  void put(char c) {
    if (length_ < sizeof buffer_) buffer_[length_++] = c;
  }
  BasicMessage& number(std::uint64_t n, unsigned base) {
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
  char buffer_[kMost] = {};
};

// Reports and warnings, from wherever the program may be on a small stack; and statistics.
using Message = BasicMessage<704>;
using LongMessage = BasicMessage<1600>;

}  // namespace hz::os
