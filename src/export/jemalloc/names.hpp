// SPDX-License-Identifier: Apache-2.0
//
// Names of values, and what a caller asks about one, by the rules of jemalloc's manual. A name is words
// between dots, of which some are numbers. The same as numbers is a MIB (management information base, SNMP's
// word): for a number itself, for another word the first row of the table that begins as this name does up to
// that word. Called by control.cpp; a name is compared with one row after the other, a MIB with its own.
#pragma once

#include <errno.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/text.hpp"

namespace hz::jemalloc {

// Where the old value goes, and what the new one is; of a name with numbers, these.
struct Question {
  void* old;
  std::size_t* old_bytes;
  const void* fresh;
  std::size_t fresh_bytes;
  std::size_t numbers[2] = {};

  bool reads() const { return old != nullptr || old_bytes != nullptr; }
  bool writes() const { return fresh != nullptr || fresh_bytes != 0; }

  // Hands a value out, if it is asked for. Of one of another size than there is room for, as much as there
  // is.
  template <class T>
  int tell(T value) const {
    if (old == nullptr || old_bytes == nullptr) return 0;
    const std::size_t room = *old_bytes, bytes = std::min(room, sizeof value);
    std::memcpy(old, &value, bytes);
    *old_bytes = bytes;
    return room == sizeof value ? 0 : EINVAL;
  }
  // For values that are read-only.
  template <class T>
  int tell_only(T value) const {
    return writes() ? EPERM : tell(value);
  }
  // Returns whether the caller has room for the number of a new object. Otherwise none is created.
  template <class T>
  bool can_tell() const {
    if (old != nullptr && old_bytes != nullptr && *old_bytes == sizeof(T)) return true;
    if (old_bytes != nullptr) *old_bytes = 0;
    return false;
  }
  // The new value, if there is one. EINVAL if it has another size.
  template <class T>
  int take(T& value) const {
    if (fresh == nullptr) return 0;
    if (fresh_bytes != sizeof value) return EINVAL;
    std::memcpy(&value, fresh, sizeof value);
    return 0;
  }
};

// `%a` and so on in a row's name is a number of the kind that the letter says; limit(kind, number) says
// whether there is one.
struct Row {
  const char* name;
  int (*answer)(const Question&);
};

inline constexpr std::size_t kMostWords = 6;

// Takes the first word off, and the dot behind it.
inline TextView next_word(TextView& name) {
  const std::size_t length = std::min(name.find('.'), name.size());
  const TextView word(name.data(), length);
  name.remove_prefix(std::min(length + 1, name.size()));
  return word;
}
inline std::size_t words_in(TextView name) {
  return name.empty() ? 0 : static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')) + 1;
}

// A decimal number; false if the word is none.
inline bool read_number(TextView word, std::size_t& number) {
  number = 0;
  for (const char c : word) {
    if (c < '0' || c > '9' || number > (std::size_t{1} << 32)) return false;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return !word.empty();
}

// All names of one table, in which those that begin alike stand together.
template <std::size_t kRows>
class Names {
 public:
  constexpr explicit Names(const Row (&rows)[kRows]) : rows_(rows) {}

  // The MIB of a name, of at most `*count` words, and how many it has then. ENOENT if no row begins so.
  int find(TextView name, std::size_t* mib, std::size_t* count, auto there_is) const {
    const std::size_t all = words_in(name), most = std::min(all, *count);
    for (std::size_t row = 0; row < kRows; ++row) {
      if (!begins(row, name, mib, most, there_is)) continue;
      *count = most;
      return 0;
    }
    return ENOENT;
  }
  // ENOENT if it is not the whole MIB of a row.
  int ask(const std::size_t* mib, std::size_t count, Question question, auto there_is) const {
    if (count == 0 || count > longest() || mib[count - 1] >= kRows) return ENOENT;
    const std::size_t row = mib[count - 1];
    TextView name = rows_[row].name;
    if (words_in(name) != count) return ENOENT;
    for (std::size_t i = 0, numbers = 0; i < count; ++i) {
      const TextView word = next_word(name);
      if (word[0] != '%') {
        if (mib[i] != first_like(row, i)) return ENOENT;
      } else {
        if (!there_is(word[1], mib[i])) return ENOENT;
        question.numbers[numbers++] = mib[i];
      }
    }
    return rows_[row].answer(question);
  }

 private:
  // Returns how many words the longest name has. A longer MIB may be longer than what the program owns.
  std::size_t longest() const {
    std::size_t most = 0;
    for (const Row& row : rows_) most = std::max(most, words_in(row.name));
    return most;
  }
  // Of the rows that have the first `last` + 1 words of this one.
  std::size_t first_like(std::size_t row, std::size_t last) const {
    while (row != 0 && alike(rows_[row].name, rows_[row - 1].name, last)) --row;
    return row;
  }
  static bool alike(TextView one, TextView two, std::size_t last) {
    for (std::size_t i = 0; i <= last; ++i)
      if (two.empty() || next_word(one) != next_word(two)) return false;
    return true;
  }
  bool begins(std::size_t row, TextView name, std::size_t* mib, std::size_t most, auto there_is) const {
    TextView known = rows_[row].name;
    const std::size_t all = words_in(name);
    if (all == 0 || all > words_in(known)) return false;
    for (std::size_t i = 0; i < all; ++i) {
      const TextView word = next_word(name), expected = next_word(known);
      std::size_t number = 0;
      if (expected[0] == '%' ? !read_number(word, number) || !there_is(expected[1], number)
                             : word != expected)
        return false;
      if (i < most) mib[i] = expected[0] == '%' ? number : first_like(row, i);
    }
    return true;
  }

  const Row (&rows_)[kRows];
};

}  // namespace hz::jemalloc
