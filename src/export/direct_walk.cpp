// SPDX-License-Identifier: Apache-2.0
//
// The direct API's looks at blocks: all that live, those of one heap, and what a heap holds. In a file of
// their own, as heaps are: few programs call them. Part of every library.
#include <cerrno>

#include "base/bytes.hpp"
#include "export/c_rules.hpp"
#include "heap/views/walk.hpp"

using TheseBlocks = hz::Walk<hz::ThisLine>;

HZ_EXPORT int hz_walk(hz_visit_t visit, void* argument) { return TheseBlocks::all(visit, argument); }
HZ_EXPORT int hz_heap_walk(hz_heap_t* heap, hz_visit_t visit, void* argument) {
  return TheseBlocks::of_heap(hz::address(heap), visit, argument);
}
HZ_EXPORT int hz_heap_stats(hz_heap_t* heap, hz_heap_stats_t* out, size_t size) {
  hz_heap_stats_t now = {};
  const int answer = TheseBlocks::figures(hz::address(heap), now);
  hz::copy_bytes(out, &now, size < sizeof now ? size : sizeof now);
  return answer;
}
