// SPDX-License-Identifier: Apache-2.0
//
// Line hz7: the tiny one. One lock, no caches, no thread of ours; a table that knows every address before it
// is read, a bitmap that proves every free. For programs that allocate little and want to be small, for
// machines with little room for code, and for readers: it is the introduction to the house (doc/line/hz7.md).
#pragma once

#include "heap/one_lock/layout.hpp"

namespace hz {

struct Hz7 {
  static constexpr const char* kName = "hz7";

  static constexpr std::size_t kRetain = 125, kFloor = 2 * kMiB;  // as v3
  // By how much free memory keeps its pages; threads cache nothing in any of them.
  static constexpr Preset kPresets[] = {
      {.name = "v1", .thread_cache = 0, .retain = 100, .floor = 0},         // none
      {.name = "v2", .thread_cache = 0, .retain = 100, .floor = 1 * kMiB},  // a fixed amount
      {.name = "v3", .thread_cache = 0, .retain = 125, .floor = 2 * kMiB},  // more, and a share of what lives
      {.name = "v4", .thread_cache = 0, .retain = 200, .floor = 16 * kMiB},  // what comes and goes in bulk
  };
};

template <>
struct Heap<Hz7> : one_lock::Heap<Hz7> {};
template <>
struct Heaps<Hz7> : one_lock::Heaps<Hz7> {};
template <>
struct Library<Hz7> : one_lock::Library<Hz7> {};
template <>
struct LayoutOf<Hz7> : one_lock::LayoutOf<Hz7> {};
template <>
struct Walk<Hz7> : one_lock::Walk<Hz7> {};

}  // namespace hz
