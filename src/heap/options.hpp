// SPDX-License-Identifier: Apache-2.0
//
// Run-time knobs: one table, read once when the heap opens, from HZ_OPTIONS="key:value,..." and then from HZ_<KEY>,
// which wins. What is not understood is named in one warning line, and the default stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "box/source/contract.hpp"
#include "os/message.hpp"

namespace hz {

// A set of values that a line offers under a name; what the user says about one of them goes before it.
struct Preset {
  const char* name;
  std::size_t thread_cache;  // as the knobs of these names
  std::size_t retain;
  std::size_t floor;  // free bytes that may stay in any case
};

enum class StatsFormat : std::uint8_t { kNone, kText, kJson };

struct Options {
  StatsFormat stats = StatsFormat::kNone;
  bool report_only = false;
  bool background = true;
  os::HugePages huge_pages = os::HugePages::kAsTheSystemSays;
  std::size_t thread_cache = 0;  // 0: the line's default
  std::size_t retain = 0;        // the same
  MemoryLimit limit_soft;        // not given: the source's default
  MemoryLimit limit_hard;
  char preset[24] = {};  // of the line's

  struct Knob {
    const char* key;       // as in HZ_OPTIONS
    const char* variable;  // as in the environment
    const char* accepted;
    const char* meaning;
    bool (*set)(Options&, const char* value);
  };
  static const Knob kKnobs[9];

  static Options read() {
    Options options;
    char value[kLongest];
    if (os::environment("HZ_OPTIONS", value, sizeof value)) options.read_list(value);
    for (const Knob& knob : kKnobs) {
      if (os::environment(knob.variable, value, sizeof value)) options.apply(knob, value);
    }
    return options;
  }

  static bool same(const char* a, const char* b) {
    while (*a != 0 && *a == *b) ++a, ++b;
    return *a == *b;
  }

 private:
  static constexpr std::size_t kLongest = 256;
  static constexpr unsigned kNoUnit = 64;
  static constexpr std::size_t kLeastLimit = kMiB;
  static constexpr std::size_t kMostLimit = 16384 * kGiB;

  // The number that `text` begins with, which is moved behind it; false if there is none, or it is above `high`.
  static bool number(const char*& text, std::size_t high, std::size_t& out) {
    const char* const start = text;
    for (out = 0; *text >= '0' && *text <= '9' && out <= high; ++text)
      out = out * 10 + static_cast<std::size_t>(*text - '0');
    return text != start && out <= high;
  }
  static bool parse(const char* text, std::size_t low, std::size_t high, std::size_t& out) {
    std::size_t n = 0;
    if (!number(text, high, n) || *text != 0 || n < low) return false;
    out = n;
    return true;
  }

  // 0, bytes with or without a unit, or per cent. Less than a MiB is no limit a program starts under, but a forgotten
  // unit.
  static bool parse_limit(const char* text, MemoryLimit& out) {
    std::size_t n = 0;
    if (!number(text, kMostLimit, n) || (*text != 0 && text[1] != 0)) return false;
    if (*text == '%') {
      if (n < 1 || n > 100) return false;
      out = {.bytes = 0, .percent = static_cast<unsigned>(n), .given = true};
      return true;
    }
    const unsigned shift = shift_of(*text);
    if (shift == kNoUnit || n > kMostLimit >> shift) return false;
    n <<= shift;
    if (n != 0 && n < kLeastLimit) return false;
    out = {.bytes = n, .percent = 0, .given = true};
    return true;
  }
  static unsigned shift_of(char unit) {
    if (unit == 0) return 0;
    const int lower = unit | 0x20;
    return lower == 'k' ? 10 : lower == 'm' ? 20 : lower == 'g' ? 30 : kNoUnit;
  }

  // `words` in the order of the type's values.
  template <class T>
  static bool choose(const char* value, std::initializer_list<const char*> words, T& out) {
    for (const char* const& word : words)
      if (same(value, word)) return out = static_cast<T>(&word - words.begin()), true;
    return false;
  }
  static bool set_stats(Options& o, const char* value) { return choose(value, {"0", "1", "json"}, o.stats); }
  static bool set_on_invalid(Options& o, const char* value) {
    return choose(value, {"abort", "report"}, o.report_only);
  }
  static bool set_background(Options& o, const char* value) { return choose(value, {"0", "1"}, o.background); }
  static bool set_huge_pages(Options& o, const char* value) {
    return choose(value, {"auto", "never", "always"}, o.huge_pages);
  }
  static bool set_thread_cache(Options& o, const char* value) {
    return parse(value, 1, std::size_t{1} << 32, o.thread_cache);
  }
  static bool set_retain(Options& o, const char* value) { return parse(value, 100, 1000, o.retain); }

  static bool set_preset(Options& o, const char* value) {
    std::size_t length = 0;
    while (value[length] != 0) ++length;
    if (length == 0 || length >= sizeof o.preset) return false;
    __builtin_memcpy(o.preset, value, length + 1);
    return true;
  }
  static bool set_limit_soft(Options& o, const char* value) { return parse_limit(value, o.limit_soft); }
  static bool set_limit_hard(Options& o, const char* value) { return parse_limit(value, o.limit_hard); }

  void apply(const Knob& knob, const char* value) {
    if (knob.set(*this, value)) return;
    os::Message message;
    message.text("hz: warning: ").text(knob.variable).text("=").text(value).text(" not understood; accepted: ");
    message.text(knob.accepted).text("\n").send();
  }

  // key:value,key:value in place
  void read_list(char* list) {
    for (char* item = list; *item != 0;) {
      char* end = item;
      while (*end != 0 && *end != ',') ++end;
      const bool last = *end == 0;
      *end = 0;
      char* value = item;
      while (*value != 0 && *value != ':') ++value;
      if (*value != 0) *value++ = 0;
      const Knob* found = nullptr;
      for (const Knob& knob : kKnobs) {
        if (same(item, knob.key)) found = &knob;
      }
      if (found != nullptr) {
        apply(*found, value);
      } else if (*item != 0) {
        os::Message message;
        message.text("hz: warning: HZ_OPTIONS=").text(item).text(" not understood; accepted:");
        for (const Knob& knob : kKnobs) message.text(" ").text(knob.key);
        message.text("\n").send();
      }
      item = last ? end : end + 1;
    }
  }
};

inline constexpr Options::Knob Options::kKnobs[9] = {
    {"stats", "HZ_STATS", "0, 1, json", "count operations and print one line at exit", set_stats},
    {"on_invalid", "HZ_ON_INVALID", "abort, report", "what follows the report of a bad pointer", set_on_invalid},
    {"thread_cache", "HZ_THREAD_CACHE", "1 to 4294967296", "bytes that one thread's bins may hold", set_thread_cache},
    {"background", "HZ_BACKGROUND", "0, 1", "whether a thread of its own may return memory while the program is idle",
     set_background},
    {"retain", "HZ_RETAIN", "100 to 1000", "how much memory may be kept, in per cent of the recent peak of live bytes",
     set_retain},
    {"limit_soft", "HZ_LIMIT_SOFT", "0, 1M to 16384G, 1% to 100%",
     "return caches and purge before the heap grows past it; 0: never", set_limit_soft},
    {"limit_hard", "HZ_LIMIT_HARD", "0, 1M to 16384G, 1% to 100%", "NULL and ENOMEM past it; 0: no limit",
     set_limit_hard},
    {"thp", "HZ_THP", "auto, never, always",
     "whether the program's memory may lie on transparent huge pages; auto: as the system says", set_huge_pages},
    {"preset", "HZ_PRESET", "a name on the line's page", "a set of values that the line offers", set_preset},
};

}  // namespace hz
