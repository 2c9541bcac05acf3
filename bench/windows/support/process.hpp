// SPDX-License-Identifier: Apache-2.0
//
// What Windows says about this process: working set, commitment, faults, time. Read between timed regions;
// nothing here allocates, so that reading does not change what is read.
#pragma once

#include <windows.h>
// Behind windows.h, which it counts on.
#include <psapi.h>
#include <unistd.h>

#include <cstdint>

namespace hz::bench {

inline PROCESS_MEMORY_COUNTERS memory_counters() {
  PROCESS_MEMORY_COUNTERS counters{};
  GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return counters;
}

inline std::uint64_t rss_kib() { return memory_counters().WorkingSetSize / 1024; }
inline std::uint64_t peak_rss_kib() { return memory_counters().PeakWorkingSetSize / 1024; }

// Memory that the system has promised to this process, touched or not.
struct Committed {
  std::uint64_t kib = 0;
  std::uint64_t peak_kib = 0;

  static Committed now() {
    const PROCESS_MEMORY_COUNTERS counters = memory_counters();
    return {counters.PagefileUsage / 1024, counters.PeakPagefileUsage / 1024};
  }
};

struct Usage {
  long minor_faults;  // of both kinds, which Windows counts together
  long major_faults;
  long voluntary_switches;  // which Windows does not tell of a process
  long involuntary_switches;
  double cpu_seconds;  // in steps of the system's clock, which are milliseconds

  static Usage now() {
    FILETIME created, ended, kernel, user;
    GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user);
    return {static_cast<long>(memory_counters().PageFaultCount), 0, 0, 0, seconds(kernel) + seconds(user)};
  }
  Usage since(const Usage& start) const {
    return {minor_faults - start.minor_faults, 0, 0, 0, cpu_seconds - start.cpu_seconds};
  }

 private:
  static double seconds(const FILETIME& t) {
    const std::uint64_t steps = std::uint64_t{t.dwHighDateTime} << 32 | t.dwLowDateTime;
    return static_cast<double>(steps) * 1e-7;
  }
};

// Steps of 100 ns on most machines.
inline std::uint64_t now_ns() {
  constexpr std::uint64_t kNs = 1'000'000'000;
  LARGE_INTEGER steps, per_second;
  QueryPerformanceCounter(&steps);
  QueryPerformanceFrequency(&per_second);
  const auto count = static_cast<std::uint64_t>(steps.QuadPart);
  const auto each = static_cast<std::uint64_t>(per_second.QuadPart);
  return count / each * kNs + count % each * kNs / each;
}

inline void sleep_ms(long ms) { Sleep(static_cast<DWORD>(ms)); }

}  // namespace hz::bench
