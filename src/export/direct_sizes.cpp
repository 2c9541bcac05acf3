// SPDX-License-Identifier: Apache-2.0
//
// Functions of the direct API for callers who know what they will do with a block: what a size really gets,
// growth in place, alignment together with zeroes or with a new size. In a file of their own: an archive
// gives them to those alone who call them. Part of every library.
#include "export/c_rules.hpp"

HZ_EXPORT size_t hz_good_size(size_t size) { return hz::c_rules::good_size(size); }
HZ_EXPORT void* hz_expand(void* ptr, size_t size) { return hz::c_rules::expand(ptr, size); }
HZ_EXPORT void* hz_aligned_calloc(size_t alignment, size_t count, size_t size) {
  return hz::c_rules::aligned_calloc(alignment, count, size);
}
HZ_EXPORT void* hz_aligned_realloc(void* ptr, size_t alignment, size_t size) {
  return hz::c_rules::aligned_realloc(ptr, alignment, size);
}
