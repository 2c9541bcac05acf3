// SPDX-License-Identifier: Apache-2.0
//
// Functions of the direct API for callers that know how they will use a block: the usable size for a request,
// growth in place, alignment together with zeroes or with a new size. In a separate file, so that an archive
// links them into programs that call them, and no others. Part of every library.
#include "export/c_rules.hpp"

HZ_EXPORT size_t hz_good_size(size_t size) { return hz::c_rules::good_size(size); }
HZ_EXPORT void* hz_expand(void* ptr, size_t size) { return hz::c_rules::expand(ptr, size); }
HZ_EXPORT void* hz_aligned_calloc(size_t alignment, size_t count, size_t size) {
  return hz::c_rules::aligned_calloc(alignment, count, size);
}
HZ_EXPORT void* hz_aligned_realloc(void* ptr, size_t alignment, size_t size) {
  return hz::c_rules::aligned_realloc(ptr, alignment, size);
}
