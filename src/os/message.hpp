// SPDX-License-Identifier: Apache-2.0
//
// One line of text for stderr, built on the stack and written with one call; used by reports and statistics,
// where stdio might allocate. What does not fit is cut off.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/os.hpp"

namespace hz::os {

// Words, one after the other, for a type that takes letters by `put`.
template <class Self>
class Words {
 public:
  Self& text(const char* s) {
    while (*s != 0) self().put(*s++);
    return self();
  }
  Self& part(const char* s, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) self().put(s[i]);
    return self();
  }
  // Up to the first blank: the value of a key=value pair has none.
  Self& word(const char* s) {
    while (*s != 0 && *s != ' ') self().put(*s++);
    return self();
  }
  // As one word of plain letters, for a line that others take apart. A file's name has at most 255 letters,
  // but a program may be started with any name.
  Self& name(const char* s) {
    for (const char* const end = s + 255; *s != 0 && s != end; ++s)
      self().put(*s > ' ' && *s <= '~' && *s != '"' && *s != '\\' ? *s : '_');
    return self();
  }
  Self& decimal(std::uint64_t n) { return number(n, 10); }
  Self& hex(std::uint64_t n) { return number(n, 16); }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  Self& number(std::uint64_t n, unsigned base) {
    char digits[20];
    unsigned count = 0;
    do {
      digits[count++] = "0123456789abcdef"[n % base];
      n /= base;
    } while (n != 0);
    while (count != 0) self().put(digits[--count]);
    return self();
  }
};

template <std::size_t kMost>
class BasicMessage : public Words<BasicMessage<kMost>> {
 public:
  void clear() { length_ = 0; }
  char* space() { return buffer_; }  // for callers that write there directly
  const char* data() const { return buffer_; }
  std::size_t size() const { return length_; }
  void send() { write_error(buffer_, length_); }
  void send_as_statistics() { write_statistics(buffer_, length_); }

 private:
  friend Words<BasicMessage>;
  void put(char c) {
    if (length_ < sizeof buffer_) buffer_[length_++] = c;
  }

  std::size_t length_ = 0;
  char buffer_[kMost] = {};
};

// The same in the caller's memory, with a 0 behind it wherever there is room for one.
class TextInto : public Words<TextInto> {
 public:
  TextInto(char* at, std::size_t room) : at_(at), room_(at == nullptr ? 0 : room) { clear(); }

  void clear() {
    length_ = 0;
    if (room_ != 0) at_[0] = 0;
  }
  std::size_t size() const { return length_; }

 private:
  friend Words<TextInto>;
  void put(char c) {
    if (length_ + 1 >= room_) return;
    at_[length_++] = c;
    at_[length_] = 0;
  }

  char* const at_;
  const std::size_t room_;
  std::size_t length_ = 0;
};

// Reports and warnings, from wherever the program may be on a small stack; and statistics.
using Message = BasicMessage<704>;
using LongMessage = BasicMessage<1600>;

}  // namespace hz::os
