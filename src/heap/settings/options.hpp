// SPDX-License-Identifier: Apache-2.0
//
// Run-time knobs: one table, read once when the heap opens, from HZ_OPTIONS="key:value,..." and then from
// HZ_<KEY>, which wins. What is not understood is named in one warning line, and the default stays; so is
// a variable that resembles one of them, as a mistyped one does. Some can be set later, too (control.hpp): of
// these the heap says what they are now.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/text.hpp"
#include "box/policy/contract.hpp"
#include "box/retain/contract.hpp"
#include "box/source/contract.hpp"
#include "heap/samples/extension.hpp"
#include "os/os.hpp"

namespace hz::os {
class TextInto;
}

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
const Preset* preset_among(const Presets& presets, TextView name) {
  for (const Preset& one : presets)
    if (name == one.name) return &one;
  return nullptr;
}

enum class StatsFormat : std::uint8_t { kNone, kText, kJson };

// What of the heap a knob is that can be set while it is in use.
enum class Setting : std::uint8_t {
  kStartOnly,
  kThreadCache,
  kRetain,
  kRetainFloor,
  kLimitSoft,
  kLimitHard,
  kOnInvalid,
  kHeapProfile,
  kGuardSample,
  kLearning  // a bound of a policy that learns
};

struct Options {
  StatsFormat stats = StatsFormat::kNone;
  bool stats_said = false, stats_file_said = false;  // the system knows which file
  bool report_only = false;
  bool background = true;
  bool name_mappings = false;
  bool redirect = true;
  bool keep_deepbind = false;
  bool control = false;
  os::HugePages huge_pages = os::HugePages::kAsTheSystemSays;
  std::size_t thread_cache = 0;  // 0: the line's default
  std::size_t retain = 0;        // the same
  std::size_t retain_floor = RetainSettings::kUsual;
  MemoryLimit limit_soft;  // not given: the source's default
  MemoryLimit limit_hard;
  char preset[24] = {};  // of the line's
  Learning learning = Learning::kSizes;
  Cap cap;
  std::size_t heap_profile = 0;  // bytes between samples; 0: none is kept
  bool heap_profile_said = false, heap_profile_file_said = false;
  std::size_t guard_sample = 0;  // one allocation in so many lies on a guarded page; 0: none

  struct Knob {
    const char* key;       // as in HZ_OPTIONS
    const char* variable;  // as in the environment
    const char* accepted;
    const char* meaning;
    bool (*set)(Options&, TextView value);
    void (*tell)(const Options&, os::TextInto&);  // as `set` would take it
    Setting live = Setting::kStartOnly;
  };
  static const Knob kKnobs[27];

  // Reads what the environment says over the defaults that are here. In place: a copy would call the C
  // library, with a lock held.
  void read();

  Rates rates() const { return {.interval = heap_profile, .every = guard_sample}; }
  static void keep_heap_profile_file();  // where the heap profile is written, unless the user has said

  void warn_of_preset(const char* line) const;  // that it has none of the name that the user said
  // The same, where `found` is null, and that it has no samples, if the user wants some: of a line without
  // boxes.
  void warn_of_lacks(const char* line, const Preset* found) const;
};

}  // namespace hz
