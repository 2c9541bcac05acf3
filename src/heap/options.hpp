// SPDX-License-Identifier: Apache-2.0
//
// Run-time knobs: one table, read once when the heap opens, from HZ_OPTIONS="key:value,..." and then from
// HZ_<KEY>, which wins. What is not understood is named in one warning line, and the default stays; so is
// every other variable that begins with HZ_, but for those of the launcher, the lab and the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

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
  bool stats_said = false, stats_file_said = false;  // the system knows which file
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
    bool (*set)(Options&, std::string_view value);
  };
  static const Knob kKnobs[10];

  static Options read() {
    Options options;
    os::Environment environment;
    if (const char* list = environment.value_of(kList)) options.read_list(list);
    for (const Knob& knob : kKnobs) {
      if (const char* value = environment.value_of(knob.variable)) options.apply(knob, value);
    }
    if (options.stats_file_said && !options.stats_said) options.stats = StatsFormat::kText;
    environment.rewind();
    while (const char* entry = environment.next()) name_unknown(entry);
    return options;
  }

 private:
  static constexpr const char* kList = "HZ_OPTIONS";
  static constexpr std::string_view kPrefix = "HZ_";
  // Beginnings of what `hz`, the lab and the tests tell each other: not ours, and nothing is wrong with them.
  static constexpr std::string_view kOfOthers[] = {"HZ_BUILD_DIR=", "HZ_LAB_", "HZ_TEST_", "HZ_UNIT_"};

  static constexpr unsigned kNoUnit = 64;
  static constexpr std::size_t kMostCache = 4 * kGiB;
  static constexpr std::size_t kLeastLimit = kMiB;
  static constexpr std::size_t kMostLimit = 16384 * kGiB;

  // The number that `text` begins with, which is cut off; false if there is none, or it is above `high`.
  static bool number(std::string_view& text, std::size_t high, std::size_t& out) {
    const std::size_t before = text.size();
    for (out = 0; !text.empty() && text[0] >= '0' && text[0] <= '9' && out <= high; text.remove_prefix(1))
      out = out * 10 + static_cast<std::size_t>(text[0] - '0');
    return text.size() != before && out <= high;
  }
  static bool parse(std::string_view text, std::size_t low, std::size_t high, std::size_t& out) {
    std::size_t n = 0;
    if (!number(text, high, n) || !text.empty() || n < low) return false;
    out = n;
    return true;
  }

  // Bytes, with or without a unit.
  static bool parse_size(std::string_view text, std::size_t low, std::size_t high, std::size_t& out) {
    std::size_t n = 0;
    if (!number(text, high, n) || text.size() > 1) return false;
    const unsigned shift = text.empty() ? 0 : shift_of(text[0]);
    if (shift == kNoUnit || n > high >> shift || n << shift < low) return false;
    out = n << shift;
    return true;
  }
  static unsigned shift_of(char unit) {
    const int lower = unit | 0x20;
    return lower == 'k' ? 10 : lower == 'm' ? 20 : lower == 'g' ? 30 : kNoUnit;
  }

  // A size, or per cent. Less than a MiB is no limit a program starts under, but a forgotten unit.
  static bool parse_limit(std::string_view text, MemoryLimit& out) {
    std::size_t n = 0;
    if (!text.empty() && text.back() == '%') {
      text.remove_suffix(1);
      if (!parse(text, 1, 100, n)) return false;
      out = {.bytes = 0, .percent = static_cast<unsigned>(n), .given = true};
      return true;
    }
    if (!parse_size(text, 0, kMostLimit, n) || (n != 0 && n < kLeastLimit)) return false;
    out = {.bytes = n, .percent = 0, .given = true};
    return true;
  }

  // `words` in the order of the type's values.
  template <class T>
  static bool choose(std::string_view value, std::initializer_list<const char*> words, T& out) {
    for (const char* const& word : words)
      if (value == word) return out = static_cast<T>(&word - words.begin()), true;
    return false;
  }
  static bool set_stats(Options& o, std::string_view value) {
    const bool chosen = choose(value, {"0", "1", "json"}, o.stats);
    o.stats_said |= chosen;
    return chosen;
  }
  static bool set_on_invalid(Options& o, std::string_view value) {
    return choose(value, {"abort", "report"}, o.report_only);
  }
  static bool set_background(Options& o, std::string_view value) {
    return choose(value, {"0", "1"}, o.background);
  }
  static bool set_huge_pages(Options& o, std::string_view value) {
    return choose(value, {"auto", "never", "always"}, o.huge_pages);
  }
  static bool set_thread_cache(Options& o, std::string_view value) {
    return parse_size(value, 1, kMostCache, o.thread_cache);
  }
  static bool set_retain(Options& o, std::string_view value) { return parse(value, 100, 1000, o.retain); }

  static bool set_preset(Options& o, std::string_view value) {
    if (value.empty() || value.size() >= sizeof o.preset) return false;
    __builtin_memcpy(o.preset, value.data(), value.size());
    o.preset[value.size()] = 0;
    return true;
  }
  static bool set_stats_file(Options& o, std::string_view value) {
    const bool kept = os::write_statistics_to(value.data(), value.size());
    o.stats_file_said |= kept;
    return kept;
  }
  static bool set_limit_soft(Options& o, std::string_view value) { return parse_limit(value, o.limit_soft); }
  static bool set_limit_hard(Options& o, std::string_view value) { return parse_limit(value, o.limit_hard); }

  void apply(const Knob& knob, std::string_view value) {
    if (!knob.set(*this, value)) warn_of_value(knob, value);
  }

  // key:value,key:value
  void read_list(std::string_view list) {
    while (!list.empty()) {
      const std::string_view item = cut(list, ',');
      std::string_view value = item;
      const std::string_view key = cut(value, ':');
      const Knob* found = nullptr;
      for (const Knob& knob : kKnobs) {
        if (key == knob.key) found = &knob;
      }
      if (found != nullptr) {
        apply(*found, value);
      } else if (!item.empty()) {
        warn_of_key(key);
      }
    }
  }

  // What stands before the next `end`, which is cut off as well.
  static std::string_view cut(std::string_view& text, char end) {
    std::size_t n = 0;
    while (n < text.size() && text[n] != end) ++n;
    const std::string_view before(text.data(), n);
    text.remove_prefix(n < text.size() ? n + 1 : n);
    return before;
  }

  static void name_unknown(std::string_view entry) {
    if (!entry.starts_with(kPrefix)) return;
    for (const std::string_view theirs : kOfOthers) {
      if (entry.starts_with(theirs)) return;
    }
    std::string_view value = entry;
    const std::string_view name = cut(value, '=');
    bool known = name == kList;
    for (const Knob& knob : kKnobs) known = known || name == knob.variable;
    if (!known) warn_of_variable(name, value);
  }

  // Functions of their own: a message takes 700 bytes of the stack.
  HZ_COLD static void warn_of_value(const Knob& knob, std::string_view value) {
    os::Message message;
    begin_warning(message, knob.variable, value).text(" ").text(knob.accepted).text("\n").send();
  }
  HZ_COLD static void warn_of_key(std::string_view key) {
    os::Message message;
    begin_warning(message, kList, key);
    for (const Knob& knob : kKnobs) message.text(" ").text(knob.key);
    message.text("\n").send();
  }
  HZ_COLD static void warn_of_variable(std::string_view name, std::string_view value) {
    os::Message message;
    begin_warning(message, name, value);
    for (const Knob& knob : kKnobs) message.text(" ").text(knob.variable);
    message.text(" ").text(kList).text("\n").send();
  }

  // What follows is the list of what is accepted; there is room for it, however long the rest is.
  static os::Message& begin_warning(os::Message& message, std::string_view name, std::string_view value) {
    message.text("hz: warning: ").part(name.data(), shown(name)).text("=").part(value.data(), shown(value));
    return message.text(shown(value) < value.size() ? "..." : "").text(" not understood; accepted:");
  }
  static std::size_t shown(std::string_view text) {
    constexpr std::size_t kMost = 200;
    return text.size() < kMost ? text.size() : kMost;
  }
};

inline constexpr Options::Knob Options::kKnobs[10] = {
    {"stats", "HZ_STATS", "0, 1, json", "count operations and print one line at exit", set_stats},
    {"stats_file", "HZ_STATS_FILE", "a path of up to 1000 bytes; %p in it is the process's number",
     "where the statistics line goes instead of stderr", set_stats_file},
    {"on_invalid", "HZ_ON_INVALID", "abort, report", "what follows the report of a bad pointer",
     set_on_invalid},
    {"thread_cache", "HZ_THREAD_CACHE", "1 to 4G", "bytes that one thread's bins may hold", set_thread_cache},
    {"background", "HZ_BACKGROUND", "0, 1",
     "whether a thread of its own may return memory while the program is idle", set_background},
    {"retain", "HZ_RETAIN", "100 to 1000",
     "how much memory may be kept, in per cent of the recent peak of live bytes", set_retain},
    {"limit_soft", "HZ_LIMIT_SOFT", "0, 1M to 16384G, 1% to 100%",
     "return caches and purge before the heap grows past it; 0: never", set_limit_soft},
    {"limit_hard", "HZ_LIMIT_HARD", "0, 1M to 16384G, 1% to 100%", "NULL and ENOMEM past it; 0: no limit",
     set_limit_hard},
    {"thp", "HZ_THP", "auto, never, always",
     "whether the program's memory may lie on transparent huge pages; auto: as the system says",
     set_huge_pages},
    {"preset", "HZ_PRESET", "a name on the line's page", "a set of values that the line offers", set_preset},
};

}  // namespace hz
