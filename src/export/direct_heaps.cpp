// SPDX-License-Identifier: Apache-2.0
//
// The direct API's first-class heaps. In a separate file, so that an archive links them into programs that
// call them, and no others. Part of every library.
#include "export/c_rules.hpp"

using hz::TheseHeaps;

namespace {
hz::HeapHandle handle(const hz_heap_t* heap) { return hz::address(heap); }
}  // namespace

HZ_EXPORT hz_heap_t* hz_heap_new() { return static_cast<hz_heap_t*>(hz::pointer(TheseHeaps::begin())); }
HZ_EXPORT void* hz_heap_malloc(hz_heap_t* heap, size_t size) {
  return TheseHeaps::malloc(handle(heap), size);
}
HZ_EXPORT void* hz_heap_calloc(hz_heap_t* heap, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return hz::c_rules::no_memory();
  return TheseHeaps::zeroed(handle(heap), 1, bytes);
}
HZ_EXPORT void* hz_heap_aligned_alloc(hz_heap_t* heap, size_t alignment, size_t size) {
  if (!hz::is_power_of_two(alignment)) return hz::c_rules::invalid();
  return TheseHeaps::allocate(handle(heap), alignment, size);
}
HZ_EXPORT void* hz_heap_realloc(hz_heap_t* heap, void* ptr, size_t size) {
  return TheseHeaps::realloc(handle(heap), ptr, size);
}
HZ_EXPORT void hz_heap_destroy(hz_heap_t* heap) {
  if (heap != nullptr) TheseHeaps::destroy(handle(heap));
}
HZ_EXPORT void hz_heap_delete(hz_heap_t* heap) {
  if (heap != nullptr) TheseHeaps::remove(handle(heap));
}
