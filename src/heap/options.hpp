// SPDX-License-Identifier: Apache-2.0
//
// Run-time knobs: one table, read once when the heap opens, from HZ_OPTIONS="key:value,..." and then from
// HZ_<KEY>, which wins. What is not understood is named in one warning line, and the default stays; so is
// every other variable that begins with HZ_, but for those of the launcher, the lab and the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "box/policy/contract.hpp"
#include "box/source/contract.hpp"
#include "os/os.hpp"

namespace hz {

// A set of values that a line offers under a name; what the user says about one of them goes before it.
struct Preset {
  const char* name;
  std::size_t thread_cache;  // as the knobs of these names
  std::size_t retain;
  std::size_t floor;  // free bytes that may stay in any case
  BandBytes bins = {};
};

template <class Presets>
const Preset* preset_among(const Presets& presets, std::string_view name) {
  for (const Preset& one : presets)
    if (name == one.name) return &one;
  return nullptr;
}

enum class StatsFormat : std::uint8_t { kNone, kText, kJson };

struct Options {
  StatsFormat stats = StatsFormat::kNone;
  bool stats_said = false, stats_file_said = false;  // the system knows which file
  bool report_only = false;
  bool background = true;
  bool name_mappings = false;
  bool redirect = true;
  os::HugePages huge_pages = os::HugePages::kAsTheSystemSays;
  std::size_t thread_cache = 0;  // 0: the line's default
  std::size_t retain = 0;        // the same
  MemoryLimit limit_soft;        // not given: the source's default
  MemoryLimit limit_hard;
  char preset[24] = {};  // of the line's
  Learning learning = Learning::kFrozen;
  Cap cap;

  struct Knob {
    const char* key;       // as in HZ_OPTIONS
    const char* variable;  // as in the environment
    const char* accepted;
    const char* meaning;
    bool (*set)(Options&, std::string_view value);
  };
  static const Knob kKnobs[20];

  static Options read();

  void warn_of_preset(const char* line) const;  // that it has none of the name that the user said
};

}  // namespace hz
