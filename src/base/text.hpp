// SPDX-License-Identifier: Apache-2.0
//
// Taking short texts apart: words and decimal numbers, without a copy. Called where the user's settings and
// profiles are read, when the heap opens.
#pragma once

#include <cstddef>
#include <string_view>

namespace hz {

// libc++'s starts_with calls a function of its library.
inline bool begins_with(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && std::string_view(text.data(), start.size()) == start;
}

// What stands before the next `end`, which is cut off as well.
inline std::string_view cut(std::string_view& text, char end) {
  std::size_t n = 0;
  while (n < text.size() && text[n] != end) ++n;
  const std::string_view before(text.data(), n);
  text.remove_prefix(n < text.size() ? n + 1 : n);
  return before;
}

// The number that `text` begins with, which is cut off; false if there is none, or it is above `high`.
inline bool number(std::string_view& text, std::size_t high, std::size_t& out) {
  const std::size_t before = text.size();
  for (out = 0; !text.empty() && text[0] >= '0' && text[0] <= '9' && out <= high; text.remove_prefix(1))
    out = out * 10 + static_cast<std::size_t>(text[0] - '0');
  return text.size() != before && out <= high;
}
// All of it is a number between these two.
inline bool parse(std::string_view text, std::size_t low, std::size_t high, std::size_t& out) {
  std::size_t n = 0;
  if (!number(text, high, n) || !text.empty() || n < low) return false;
  out = n;
  return true;
}

}  // namespace hz
