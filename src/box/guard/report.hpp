// SPDX-License-Identifier: Apache-2.0
//
// The one line that tells the user of a bad pointer, and the end of the program if it is to end. Called by
// every guard.
#pragma once

#include <atomic>

#include "box/guard/contract.hpp"

namespace hz {

struct FaultReport {
  enum class OnInvalid { kAbort, kReport };
  static inline constinit std::atomic<OnInvalid> on_invalid{OnInvalid::kAbort};

  static void set_on_invalid(bool report_only) {
    on_invalid.store(report_only ? OnInvalid::kReport : OnInvalid::kAbort, std::memory_order_relaxed);
  }
  static bool is_fatal(Fault fault) {
    return fault != Fault::kSizeMismatch && on_invalid.load(std::memory_order_relaxed) == OnInvalid::kAbort;
  }

  // Notes that realloc left `block` where it was, for want of memory, although less than half of it was asked
  // for. No size mismatch is reported at its address from then on; nor anywhere, after more than 16 such
  // blocks.
  static void keep(const void* block);

  // A report has gone out that the program does not survive, unless its handler of SIGABRT leaves by a jump.
  static bool is_ending() { return ending.load(std::memory_order_relaxed); }

  // Writes the report, and ends the program if the fault is fatal. Of size mismatches that a program survives
  // by default only the first 16 are written, and a line behind the last says so.
  // `strict`: what is never fatal elsewhere is as fatal as the rest.
  static void send(Fault fault, const void* at, Bin bin, const char* line, Seen seen, bool strict = false);
  // The same; if it is `fatal` the caller ends the program. `code`: the place of the code that touched that
  // address, or 0.
  static void tell(Fault fault, const void* at, Bin bin, const char* line, std::uintptr_t code, bool fatal);

  // Adds its knowledge of that address, in separate lines.
  using Explain = void (*)(std::uintptr_t at, std::uintptr_t code);
  static inline constinit std::atomic<Explain> explain{nullptr};

 private:
  static inline constinit std::atomic<bool> ending{false};
};

}  // namespace hz
