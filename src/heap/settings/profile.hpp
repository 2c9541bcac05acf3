// SPDX-License-Identifier: Apache-2.0
//
// The profile of a program: which spare classes its sizes are worth, and what that was concluded from. A text
// of lines, written by a heap that observes (HZ_POLICY=observe, HZ_PROFILE=FILE) and read by any other that
// is given it; doc/profile.md says what stands in it. Called when the heap opens, when the process exits and
// when the program asks for it; nothing allocates.
#pragma once

#include "base/size_classes.hpp"
#include "base/text.hpp"
#include "box/policy/contract.hpp"
#include "os/os.hpp"

namespace hz {

struct Profile {
  static constexpr std::size_t kMostBytes = 32 * kKiB;  // of a text

  std::size_t sizes[kSpares] = {};  // of the spare class of each doubling; 0: none
  std::size_t saves[kSpares] = {};  // bytes, as estimated
  bool small = false;               // the preset of that name costs the program nothing

  // What the watched sizes are worth: of each doubling the class that most is saved of, with the most spans
  // that it ever had.
  static Profile of(const SizeWatch& watch);

  // nullptr, or what is wrong with the text: then nothing of it counts.
  const char* parse(TextView text);
  void deal_out() const;

  // What a policy has seen and come to so far.
  struct Seen {
    const SizeWatch& sizes;
    Decisions decisions;
    Held peak;
  };
  // The text stands until the next one is composed, by one thread at a time.
  static TextView compose(const Seen& seen, const char* line);

  static bool has_file() { return *os::kept_path(os::File::kProfile) != 0; }
  // Reads the file that the user named and deals its classes out; a warning, and an empty one, if it is not
  // to be used.
  static Profile start_from_file();
  static void warn_of_no_file();                               // that the heap observes for nothing
  static bool write_file(const Seen& seen, const char* line);  // a warning and false if it cannot be
};

}  // namespace hz
