// SPDX-License-Identifier: Apache-2.0
//
// mremap without MREMAP_DONTUNMAP, for programs that QEMU's user mode runs: up to version 7.2 at least it
// takes what that flag leaves mapped for unmapped, and puts other mappings there. Takes the place of the C
// library's function, where no test brings one of its own.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

extern "C" __attribute__((weak)) void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags,
                                              ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* to = va_arg(arguments, void*);
  va_end(arguments);
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, old_bytes, bytes, flags, to));
}
