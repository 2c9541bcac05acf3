// SPDX-License-Identifier: Apache-2.0
//
// The direct API of hakozuna.h, what is said at exit or SIGTERM, and the description of the heap for `hz
// stat`. Part of every library; alone in the direct one.
#include "export/c_rules.hpp"

namespace hz {
template struct Heap<ThisLine>;
template struct Heaps<ThisLine>;
template struct Library<ThisLine>;

// For readers from outside (observe/) and for debuggers; no code of the process reads it.
extern const Layout description;
HZ_DESCRIPTION constinit const Layout description = LayoutOf<ThisLine>::make(HZ_VERSION);
}  // namespace hz

using hz::ThisHeap;
using hz::ThisLibrary;

HZ_EXPORT void* hz_malloc(size_t size) { return ThisHeap::malloc(size); }
HZ_EXPORT void hz_free(void* ptr) { ThisHeap::free(ptr); }
HZ_EXPORT void* hz_calloc(size_t count, size_t size) { return ThisHeap::calloc(count, size); }
HZ_EXPORT void* hz_realloc(void* ptr, size_t size) { return ThisHeap::realloc(ptr, size); }
HZ_EXPORT void* hz_aligned_alloc(size_t alignment, size_t size) {
  return hz::c_rules::aligned(alignment, size);
}
HZ_EXPORT void hz_free_sized(void* ptr, size_t size) {
  ThisHeap::free_sized(ptr, size, 1, ThisHeap::kAfterRealloc);
}
HZ_EXPORT void hz_free_aligned_sized(void* ptr, size_t alignment, size_t size) {
  ThisHeap::free_sized(ptr, size, alignment, ThisHeap::kAfterRealloc);
}
HZ_EXPORT size_t hz_usable_size(const void* ptr) { return ThisHeap::usable_size(ptr); }
HZ_EXPORT int hz_defrag_hint(const void* ptr) { return ThisHeap::defrag_hint(ptr) ? 1 : 0; }
HZ_EXPORT int hz_owns(const void* ptr) { return ThisHeap::owns(ptr) ? 1 : 0; }
HZ_EXPORT int hz_check(const void* ptr) { return static_cast<int>(ThisHeap::check(ptr)); }
HZ_EXPORT int hz_trim(size_t pad) { return ThisHeap::trim(pad) ? 1 : 0; }
HZ_EXPORT int hz_write_profile() { return ThisLibrary::write_profile() ? 1 : 0; }
HZ_EXPORT const char* hz_version() { return HZ_VERSION; }
HZ_EXPORT const char* hz_line() { return hz::ThisLine::kName; }

HZ_EXPORT void hz_stats(hz_stats_t* out, size_t size) {
  const hz_stats_t now = ThisLibrary::stats();
  memcpy(out, &now, size < sizeof now ? size : sizeof now);
}

namespace {
__attribute__((constructor)) void at_start() {
  hz::os::stay_loaded();
  ThisLibrary::at_load();
  hz::begin_control();
}
__attribute__((destructor)) void at_end() {
  hz::Control::at_exit();
  ThisLibrary::at_exit();
}
}  // namespace
