// SPDX-License-Identifier: Apache-2.0
//
// What the system says about this process: resident set, faults, switches, time. Read between timed regions;
// nothing here allocates, so that reading does not change what is read.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace hz::bench {

// The number after `key` in a /proc file of "Key:  123 kB" lines; 0 if it is not there.
inline std::uint64_t proc_kib(const char* file, const char* key) {
  char text[8192];
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::size_t length = 0;
  for (ssize_t n = 0; length < sizeof(text) - 1; length += static_cast<std::size_t>(n)) {
    n = read(fd, text + length, sizeof(text) - 1 - length);
    if (n <= 0) break;
  }
  close(fd);
  text[length] = '\0';
  const char* found = std::strstr(text, key);
  return found != nullptr ? std::strtoull(found + std::strlen(key), nullptr, 10) : 0;
}

// smaps_rollup walks the page tables and is exact; statm and VmRSS are sums of counters that lag behind by up
// to a batch per CPU, which is as much as a small allocator holds.
inline std::uint64_t rss_kib() { return proc_kib("/proc/self/smaps_rollup", "\nRss:"); }

// ru_maxrss of this program alone: the value getrusage gives also remembers the launcher's image before exec,
// so a run started from a large script would show the script's peak.
inline std::uint64_t peak_rss_kib() { return proc_kib("/proc/self/status", "\nVmHWM:"); }

// Memory that the system has promised to this process, touched or not. Linux counts none for a process.
struct Committed {
  std::uint64_t kib = 0;
  std::uint64_t peak_kib = 0;

  static Committed now() { return {}; }
};

struct Usage {
  long minor_faults;
  long major_faults;
  long voluntary_switches;
  long involuntary_switches;
  double cpu_seconds;  // much less than wall time times threads, with a CPU for each: others were using them

  static Usage now() {
    rusage r{};
    getrusage(RUSAGE_SELF, &r);
    return {r.ru_minflt, r.ru_majflt, r.ru_nvcsw, r.ru_nivcsw, seconds(r.ru_utime) + seconds(r.ru_stime)};
  }
  Usage since(const Usage& start) const {
    return {minor_faults - start.minor_faults, major_faults - start.major_faults,
            voluntary_switches - start.voluntary_switches, involuntary_switches - start.involuntary_switches,
            cpu_seconds - start.cpu_seconds};
  }

 private:
  static double seconds(const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  }
};

inline std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

inline void sleep_ms(long ms) {
  timespec t{ms / 1000, ms % 1000 * 1'000'000};
  while (nanosleep(&t, &t) != 0) {
  }
}

}  // namespace hz::bench
