// SPDX-License-Identifier: Apache-2.0
//
// mremap as kernels before 6.17 have it: what is moved must lie in one mapping, and that is found out after
// the target was unmapped; or as those before 5.7. Takes the place of our system calls in the
// programs that it is linked into (--wrap).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace {

bool InOneMapping(const void* at, std::size_t bytes) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  bool found = false;
  char line[512];
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long low = 0, high = 0;
    found = std::sscanf(line, "%lx-%lx", &low, &high) == 2 && low <= begin && begin + bytes <= high;
  }
  std::fclose(maps);
  return found;
}

}  // namespace

// Kernels before 5.7 do not know the flag that leaves the old place mapped.
bool mremap_knows_every_flag = true;
std::atomic<unsigned> mremap_calls{0};

extern "C" long __real_hz_system_call(long number, long a, long b, long c, long d, long e, long f);

extern "C" long __wrap_hz_system_call(long number, long a, long b, long c, long d, long e, long f) {
  if (number != SYS_mremap) return __real_hz_system_call(number, a, b, c, d, e, f);
  ++mremap_calls;
  if (!mremap_knows_every_flag && (d & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0) return -EINVAL;
  if ((d & MREMAP_FIXED) != 0 &&
      !InOneMapping(reinterpret_cast<const void*>(a), static_cast<std::size_t>(b))) {
    munmap(reinterpret_cast<void*>(e), static_cast<std::size_t>(c));
    return -EFAULT;
  }
  return __real_hz_system_call(number, a, b, c, d, e, f);
}
