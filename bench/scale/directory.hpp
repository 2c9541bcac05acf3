// SPDX-License-Identifier: Apache-2.0
//
// Which core has which line of 64 bytes, and when a line can be had: a directory as it stands behind private
// caches of any size. Counts what passes between cores; knows neither cache sizes nor the machine's wires.
// Called by cores.cpp for each access that a core's own memory of its lines (Near) does not answer, by one
// thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace hz::scale {

inline constexpr unsigned kMostCores = 128;
inline constexpr unsigned kLineShift = 6;

// In units of virtual time, of which `per_nanosecond` are a nanosecond; an instruction is one.
struct Costs {
  std::uint64_t per_nanosecond = 6;
  std::uint64_t transfer = 360;  // of a line that another core has written
  std::uint64_t near = 180;      // of a line that nobody has to give away
  std::uint64_t held = 30;       // after it arrived, before the next core can have it
};

class Cores {
 public:
  void add(unsigned core) { words_[core / 64] |= std::uint64_t{1} << core % 64; }
  bool has(unsigned core) const { return (words_[core / 64] >> core % 64 & 1) != 0; }
  bool any_but(unsigned core) const {
    Cores others = *this;
    others.words_[core / 64] &= ~(std::uint64_t{1} << core % 64);
    return (others.words_[0] | others.words_[1]) != 0;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (unsigned word = 0; word < words_.size(); ++word)
      for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
        visit(word * 64 + static_cast<unsigned>(__builtin_ctzll(left)));
  }

 private:
  std::array<std::uint64_t, kMostCores / 64> words_{};
};

// What a core certainly has: most accesses end here.
class Near {
 public:
  bool has(std::uint64_t line, bool to_write) const {
    const std::uint64_t row = rows_[line % kRows];
    return row >> 1 == line && (!to_write || (row & 1) != 0);
  }
  void gets(std::uint64_t line, bool to_write) { rows_[line % kRows] = line << 1 | (to_write ? 1 : 0); }
  void keeps_to_read(std::uint64_t line) {
    if (rows_[line % kRows] >> 1 == line) rows_[line % kRows] = line << 1;
  }
  void loses(std::uint64_t line) {
    if (rows_[line % kRows] >> 1 == line) rows_[line % kRows] = 0;
  }

 private:
  static constexpr std::uint64_t kRows = 4096;
  std::array<std::uint64_t, kRows> rows_{};
};

class Directory {
 public:
  static constexpr int kNobody = -1;
  struct Line {
    std::uint64_t number = 0;
    Cores readers;  // who have it; one of them may be the writer
    std::int32_t writer = kNobody;
    std::uint32_t tally = 0;    // the caller's
    std::uint64_t free_at = 0;  // until then it is on its way to another core
  };
  // When an access begins, and when it is done if nobody comes between.
  struct Wait {
    std::uint64_t begins, done;
  };

  explicit Directory(Costs costs)
      : costs_(costs),
        lines_(static_cast<Line*>(std::calloc(kRows, sizeof(Line)))),
        near_(static_cast<Near*>(std::calloc(kMostCores, sizeof(Near)))) {}

  Near& near(unsigned core) { return near_[core]; }

  Line& line(std::uint64_t number) {
    for (std::uint64_t row = number * 0x9E3779B97F4A7C15 >> (64 - kRowBits);; row = (row + 1) % kRows) {
      Line& line = lines_[row];
      if (line.number == number) return line;
      if (line.number != 0) continue;
      if (++used_ > kRows / 4 * 3)
        std::fputs("scale: more lines than the directory holds\n", stderr), std::abort();
      line.number = number;
      line.writer = kNobody;
      return line;
    }
  }

  // Whether an access goes on at once, although the core's Near did not know.
  bool has(Line& line, unsigned core, bool to_write) {
    if (!line.readers.has(core) || (to_write && line.readers.any_but(core))) return false;
    if (to_write) line.writer = static_cast<std::int32_t>(core);
    near_[core].gets(line.number, line.writer == static_cast<std::int32_t>(core));
    return true;
  }

  // Asked before `arrive`: a line passes from one core to the next, so it is reserved in the order of asking.
  // Whoever writes without an atomic operation does not wait for the line; who comes after does.
  Wait ask(Line& line, unsigned core, bool to_write, bool goes_on, std::uint64_t now) {
    if (!line.readers.any_but(core)) return {now, now + (goes_on ? 0 : costs_.near)};
    if (!to_write && line.writer == kNobody) {
      const std::uint64_t begins = now > line.free_at ? now : line.free_at;
      return {begins, begins + costs_.near};
    }
    const std::uint64_t begins = now > line.free_at ? now : line.free_at;
    line.free_at = begins + costs_.transfer + costs_.held;
    return {begins, begins + (goes_on ? 0 : costs_.transfer)};
  }

  // Whether it passed from one core to another: it was written there, or they lose it. A line that nobody
  // wrote costs nobody anything.
  bool arrive(Line& line, unsigned core, bool to_write) {
    const bool written = line.writer != kNobody && line.writer != static_cast<std::int32_t>(core);
    if (!to_write) {
      if (written) near_[line.writer].keeps_to_read(line.number);
      if (written) line.writer = kNobody;
      line.readers.add(core);
      near_[core].gets(line.number, line.writer == static_cast<std::int32_t>(core));
      return written;
    }
    const bool others = line.readers.any_but(core);
    line.readers.for_each([&](unsigned other) {
      if (other != core) near_[other].loses(line.number);
    });
    line.readers = {};
    line.readers.add(core);
    line.writer = static_cast<std::int32_t>(core);
    near_[core].gets(line.number, true);
    return others;
  }

 private:
  static constexpr unsigned kRowBits = 22;
  static constexpr std::uint64_t kRows = std::uint64_t{1} << kRowBits;

  Costs costs_;
  Line* lines_;  // zero pages until they are touched
  Near* near_;
  std::uint64_t used_ = 0;
};

}  // namespace hz::scale
