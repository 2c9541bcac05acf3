// SPDX-License-Identifier: Apache-2.0
//
// Control while a process runs: the keys of the knobs, of which some can be set, and things to do now. Asked
// by hz_ctl, and from outside, where the process permitted it at its start, by a thread of ours, hz-control.
// The same thread writes the statistics line into the folder that HZ_STATS_DIR names. Where neither was
// asked for there is nothing of it, but for one load in malloc's slow paths.
//
// A second one, hz-keeper, sleeps all the time. The C library has the last thread of a process run what is to
// be run at its exit; the keeper has the program's open files, and the other one has not.
//
// They are born when the library is loaded, and in the child of a fork by the first malloc that is slow. The
// first holds none of the heap's locks while it waits, and has a separate table of open files
// (os::leave_files). They end after the program's last thread.
#pragma once

#include <atomic>

#include "base/text.hpp"
#include "heap/settings/options.hpp"
#include "os/message.hpp"

namespace hz {

enum class Action : std::uint8_t { kTrim, kPurge, kWriteStats, kWriteProfile, kWriteHeapProfile };

// What came of a question: an error as errno has them, and its reason; 0, and a word.
struct Outcome {
  int error;
  const char* text;
};

// What is asked of the heap: functions of Library<Line>.
struct Controlled {
  Options (*settings)();          // as they are now
  const char* (*lacks)(Setting);  // why the line has none of it; nullptr: it has
  Outcome (*change)(Setting, const Options& before, const Options& wanted);
  Outcome (*act)(Action);
  void (*begin_thread)();                         // a thread of ours, which has no heap
  os::LongMessage& (*compose)(os::LongMessage&);  // the statistics line
};
template <class Library>
inline constexpr Controlled kControlled = {&Library::settings, &Library::lacks,        &Library::change,
                                           &Library::act,      &Library::begin_thread, &Library::compose};

struct Control {
  // What stands under `key` now, after it was set to `value`, unless that is null; "list": all of them. 0 and
  // the value, or an error as errno has them and a sentence.
  static int ask(const Controlled& heap, TextView key, const TextView* value, os::TextInto& text);

  // At load, when the options have been read. Warns of what the system refuses.
  static void at_load(const Controlled& heap);
  static void at_exit();
  // Whether there is to be a thread, and is none. Asked in malloc's slow paths, which start it then, without
  // a lock.
  HZ_INLINE static bool is_missing() { return state.load(std::memory_order_relaxed) == kMissing; }
  HZ_COLD static bool start();
  // In the child of a fork, which has none of our threads.
  HZ_INLINE static void begin_process() {
    if (HZ_UNLIKELY(state.load(std::memory_order_relaxed) != kNone)) begin_again();
  }

 private:
  static constexpr std::uint32_t kNone = 0, kMissing = 1, kStarts = 2, kRuns = 3, kEnded = 4;
  static constexpr unsigned kTick = 1000;  // milliseconds, from one look to the next
  static const os::OwnThread kKeeper, kServer;

  static void begin_again();
  static void keep();
  static void run();
  static const std::uint32_t* word() { return reinterpret_cast<const std::uint32_t*>(&state); }
  static std::size_t answer(const os::Request& request, char* out, std::size_t room);
  static void write_file(os::LongMessage& last);

  static inline constinit std::atomic<std::uint32_t> state{kNone};
  static inline constinit std::atomic<std::uint64_t> not_before{0};  // milliseconds
  // Written by the starter of the thread, and then by the thread.
  static inline constinit const Controlled* controlled = nullptr;
  static inline constinit bool permits = false;  // requests from outside
  static inline constinit int refusal = 0;       // of the system, as errno has them
};

}  // namespace hz
