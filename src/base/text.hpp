// SPDX-License-Identifier: Apache-2.0
//
// Views of short texts, and functions that split them into words and decimal numbers without a copy. Called
// when the heap opens, where it reads the user's settings, profiles and the system's files.
// Lock: the heap's start holds one, so nothing here calls the C library: a program may wrap its functions and
// allocate in a wrapper.
#pragma once

#include <cstddef>
#include <string_view>

namespace hz {

// Compares and measures byte by byte. std::char_traits calls the C library for both.
struct OwnTraits : std::char_traits<char> {
  static constexpr int compare(const char* one, const char* other, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      if (one[i] != other[i])
        return static_cast<unsigned char>(one[i]) < static_cast<unsigned char>(other[i]) ? -1 : 1;
    return 0;
  }
  static constexpr std::size_t length(const char* text) {
    std::size_t n = 0;
    while (text[n] != 0) ++n;
    return n;
  }
};
using TextView = std::basic_string_view<char, OwnTraits>;

// libc++'s starts_with calls a function of its library.
inline bool begins_with(TextView text, TextView start) {
  return text.size() >= start.size() && TextView(text.data(), start.size()) == start;
}
// Returns the same without a measure of `text`, which may be long and ends in 0: the check stops at the first
// letter that differs.
inline bool begins_with(const char* text, TextView start) {
  std::size_t i = 0;
  while (i < start.size() && text[i] == start[i]) ++i;
  return i == start.size();
}

// What stands before the next `end`, which is cut off as well.
inline TextView cut(TextView& text, char end) {
  std::size_t n = 0;
  while (n < text.size() && text[n] != end) ++n;
  const TextView before(text.data(), n);
  text.remove_prefix(n < text.size() ? n + 1 : n);
  return before;
}

// The number that `text` begins with, which is cut off; false if there is none, or it is above `high`.
inline bool number(TextView& text, std::size_t high, std::size_t& out) {
  const std::size_t before = text.size();
  for (out = 0; !text.empty() && text[0] >= '0' && text[0] <= '9' && out <= high; text.remove_prefix(1))
    out = out * 10 + static_cast<std::size_t>(text[0] - '0');
  return text.size() != before && out <= high;
}
// All of it is a number between these two.
inline bool parse(TextView text, std::size_t low, std::size_t high, std::size_t& out) {
  std::size_t n = 0;
  if (!number(text, high, n) || !text.empty() || n < low) return false;
  out = n;
  return true;
}

}  // namespace hz
