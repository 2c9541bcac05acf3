// SPDX-License-Identifier: Apache-2.0
//
// The malloc family under its C, POSIX, GNU, C23, BSD and macOS names. What is missing here would be served
// by the C library's own heap, and its blocks would be rejected by our free: so nothing is missing.
#include <malloc.h>
#include <stdlib.h>

#include "export/c_rules.hpp"
#include "os/os.hpp"

using hz::ThisHeap;

HZ_EXPORT void* malloc(size_t size) { return ThisHeap::malloc(size); }
HZ_EXPORT void free(void* ptr) { ThisHeap::free(ptr); }
HZ_EXPORT void* calloc(size_t count, size_t size) { return ThisHeap::calloc(count, size); }
HZ_EXPORT void* realloc(void* ptr, size_t size) { return ThisHeap::realloc(ptr, size); }
// For dlsym.cpp: the program may have a realloc, and the name then means that one.
extern "C" __attribute__((alias("realloc"), visibility("hidden"), alloc_size(2))) void* hz_own_realloc(
    void*, size_t) noexcept;

HZ_EXPORT void* reallocf(void* ptr, size_t size) {
  void* moved = ThisHeap::realloc(ptr, size);
  if (moved == nullptr && size != 0) ThisHeap::free(ptr);
  return moved;
}

HZ_EXPORT void* memalign(size_t alignment, size_t size) {
  return hz::c_rules::aligned_as_glibc(alignment, size);
}
HZ_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return hz::c_rules::aligned_as_glibc(alignment, size);
}

HZ_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) {
  if (alignment < sizeof(void*) || !hz::is_power_of_two(alignment)) return EINVAL;
  void* block = hz::c_rules::aligned(alignment, size);
  if (block == nullptr) return errno;  // which stays ENOMEM, as with the C libraries: programs tell by it
  *out = block;
  return 0;
}

HZ_EXPORT void* valloc(size_t size) { return hz::c_rules::aligned(hz::os::page_bytes(), size); }
HZ_EXPORT void* pvalloc(size_t size) {
  const size_t page = hz::os::page_bytes();
  if (size > PTRDIFF_MAX) return hz::c_rules::no_memory();
  return hz::c_rules::aligned(page, size == 0 ? page : hz::align_up(size, page));
}

HZ_EXPORT void cfree(void* ptr) { ThisHeap::free(ptr); }
HZ_EXPORT void free_sized(void* ptr, size_t size) {
  ThisHeap::free_sized(ptr, size, 1, ThisHeap::kAfterRealloc);
}
HZ_EXPORT void free_aligned_sized(void* ptr, size_t alignment, size_t size) {
  ThisHeap::free_sized(ptr, size, alignment, ThisHeap::kAfterRealloc);
}

HZ_EXPORT size_t malloc_usable_size(void* ptr) { return ThisHeap::usable_size(ptr); }

// macOS's name, which others have, too: what is usable in a block of that size.
HZ_EXPORT size_t malloc_good_size(size_t size) { return hz::c_rules::good_size(size); }
