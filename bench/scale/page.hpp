// SPDX-License-Identifier: Apache-2.0
//
// A page at a fixed address that the guest (machine.cpp) and the plugin (cores.cpp) share: a plugin of QEMU
// can neither be called by the guest nor look up its symbols. Written by one side and read by the other,
// while one thread runs.
#pragma once

#include <cstdint>

namespace hz::scale {

struct Page {
  static constexpr std::uint64_t kAt = 0x10000000;
  static constexpr unsigned kMostOperations = 8;

  // By the guest, before it writes `ready`: where the functions begin whose calls are operations.
  std::uint64_t operations[kMostOperations];
  std::uint64_t ready;
  // By the plugin: nanoseconds of virtual time.
  std::uint64_t nanoseconds;
};

}  // namespace hz::scale
