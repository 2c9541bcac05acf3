// SPDX-License-Identifier: Apache-2.0
//
// The private names under which glibc calls its own heap, and some programs too. With glibc alone: musl has
// the same names for a heap that it keeps to itself, and a static program would have each of them twice.
#include <malloc.h>
#include <stdlib.h>

#include "export/c_rules.hpp"

using hz::ThisHeap;

HZ_EXPORT void* __libc_malloc(size_t size) { return ThisHeap::malloc(size); }
HZ_EXPORT void __libc_free(void* ptr) { ThisHeap::free(ptr); }
HZ_EXPORT void* __libc_calloc(size_t count, size_t size) { return ThisHeap::calloc(count, size); }
HZ_EXPORT void* __libc_realloc(void* ptr, size_t size) { return ThisHeap::realloc(ptr, size); }
HZ_EXPORT void* __libc_memalign(size_t alignment, size_t size) {
  return hz::c_rules::aligned_as_glibc(alignment, size);
}
HZ_EXPORT void* __libc_valloc(size_t size) { return valloc(size); }
HZ_EXPORT void* __libc_pvalloc(size_t size) { return pvalloc(size); }
HZ_EXPORT int __posix_memalign(void** out, size_t alignment, size_t size) {
  return posix_memalign(out, alignment, size);
}
