// SPDX-License-Identifier: Apache-2.0
//
// The figures that jemalloc's interface asks for, as they stood at the last epoch. Called by control.cpp and
// print.cpp. Each is a separate word. Two threads that begin an epoch at once may mix theirs, but no thread
// waits, and a fork finds no lock held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/size_classes.hpp"
#include "hakozuna/hakozuna.h"

namespace hz::jemalloc {

// The version of the interface, and of the library behind it.
inline constexpr const char* kVersion = "5.3.0-hakozuna-" HZ_VERSION;

enum class Figure : unsigned {
  kAllocated,
  kActive,
  kMetadata,
  kResident,
  kMapped,
  kRetained,
  kDirty,
  kHuge,
  kThreads,
  kCount
};

struct Figures {
  // All stand still until the next one. Costs what statistics cost, and a look at the row of each granule.
  static void begin_epoch();
  static std::uint64_t epoch();  // the first one begins with the first question

  static std::size_t of(Figure figure);
  static std::size_t spans(Bin bin);
  // Slots that are out of their spans, in a thread's cache or live. Counted when they are asked for the first
  // time in an epoch, for that takes a lock for each span.
  static std::size_t slots(Bin bin);
  // Bytes of slots of these classes, and of huge blocks where the classes of large blocks are among them.
  static std::size_t slot_bytes(Bin first, Bin last);
};

}  // namespace hz::jemalloc
