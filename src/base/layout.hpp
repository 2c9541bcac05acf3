// SPDX-License-Identifier: Apache-2.0
//
// The description of a process for readers of its memory from outside (observe/): words with a name, and
// where each lies. Each box names its own; heap/views/layout.hpp puts them together in one constant table. So
// a reading costs the process nothing, and the reader needs neither debugging information nor the same
// release. The description lies among the library's variables, in a separate section, .hakozuna, so that a
// linker keeps it. The reader searches for its magic bytes there, in memory. Source of the idea: the symbols
// of libthread_db, and _Py_DebugOffsets of CPython.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hz::layout {

// What an offset is counted from: the number of an address in Layout::part. An address that is null belongs
// to a pattern: something that there are many of, such as threads.
using Part = std::uint8_t;
inline constexpr Part kNumber = 0;  // not an offset

struct Word {
  char name[24] = {};
  std::uint32_t offset = 0;
  std::uint16_t count = 1;  // in a row
  std::uint8_t bytes = 0;   // of each
  Part part = kNumber;

  constexpr Word() = default;
  // A number that the reader has to know.
  constexpr Word(const char* text, std::size_t number) : offset(static_cast<std::uint32_t>(number)) {
    write(text);
  }
  // In a slice of a box's own.
  constexpr Word(const char* text, std::size_t at, std::size_t size, std::size_t many = 1)
      : offset(static_cast<std::uint32_t>(at)),
        count(static_cast<std::uint16_t>(many)),
        bytes(static_cast<std::uint8_t>(size)) {
    write(text);
  }

 private:
  constexpr void write(const char* text) {
    for (std::size_t i = 0; text[i] != 0; ++i)
      name[i] = text[i];  // too long a name does not compile: the words are constants
  }
};
static_assert(sizeof(Word) == 32);

template <std::size_t kCount>
using Words = std::array<Word, kCount>;

// Words of a slice that lies `at` bytes from the part's beginning; numbers stay.
template <std::size_t kCount>
constexpr Words<kCount> placed(Words<kCount> words, Part part, std::size_t at) {
  for (Word& word : words) {
    if (word.bytes == 0) continue;
    word.part = part;
    word.offset += static_cast<std::uint32_t>(at);
  }
  return words;
}

template <std::size_t... kCounts>
constexpr auto joined(const Words<kCounts>&... lists) {
  Words<(kCounts + ...)> all;
  std::size_t at = 0;
  const auto add = [&](const auto& list) {
    for (const Word& word : list) all[at++] = word;
  };
  (add(lists), ...);
  return all;
}

}  // namespace hz::layout

namespace hz {

// What the section holds. The words are shared by all processes; what the loader relocates is this.
struct Layout {
  static constexpr std::uint32_t kVersion = 1;
  static constexpr layout::Part kMostParts = 16;

  char magic[8] = {'h', 'z', 'l', 'a', 'y', 'o', 'u', 't'};
  std::uint32_t version = kVersion, bytes = sizeof(Layout);
  char line[16] = {}, release[16] = {};
  std::uint32_t word_bytes = sizeof(layout::Word), words = 0;
  const layout::Word* of = nullptr;
  const volatile void* part[kMostParts] = {};

  template <std::size_t kCount>
  constexpr Layout(const char* line_name, const char* release_name, const layout::Words<kCount>& list)
      : words(kCount), of(list.data()) {
    write(line, line_name);
    write(release, release_name);
  }

 private:
  static constexpr void write(char (&to)[16], const char* text) {
    for (unsigned i = 0; i + 1 < sizeof to && text[i] != 0; ++i) to[i] = text[i];
  }
};

}  // namespace hz
