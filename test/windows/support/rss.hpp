// SPDX-License-Identifier: Apache-2.0
//
// Resident memory of this process, on Windows: its working set.
#pragma once

#include <windows.h>
// Behind windows.h, which it counts on.
#include <psapi.h>

#include <cstddef>

namespace hz_test {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline PROCESS_MEMORY_COUNTERS MemoryCounters() {
  PROCESS_MEMORY_COUNTERS counters = {};
  GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return counters;
}

inline std::size_t RssBytes() { return MemoryCounters().WorkingSetSize; }
inline std::size_t PeakRssBytes() { return MemoryCounters().PeakWorkingSetSize; }
// No such thing.
inline bool ResetPeakRss() { return false; }

}  // namespace hz_test
