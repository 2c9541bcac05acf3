// SPDX-License-Identifier: Apache-2.0
//
// mremap as kernels before 6.17 have it: what is moved must lie in one mapping, and that is found out after
// the target was unmapped; or as those before 5.7. Takes the place of the C library's function in the
// programs that it is linked into.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
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

extern "C" void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* to = va_arg(arguments, void*);
  va_end(arguments);
  ++mremap_calls;
  if (!mremap_knows_every_flag && (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if ((flags & MREMAP_FIXED) != 0 && !InOneMapping(from, old_bytes)) {
    munmap(to, bytes);
    errno = EFAULT;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, old_bytes, bytes, flags, to));
}
