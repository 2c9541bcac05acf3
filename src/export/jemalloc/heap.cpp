// SPDX-License-Identifier: Apache-2.0
//
// See heap.hpp.
#include "export/jemalloc/heap.hpp"

#include "export/line.hpp"

namespace hz::jemalloc {

std::size_t good_size(std::size_t alignment, std::size_t size) {
  return ThisHeap::good_size(alignment, size);
}
std::size_t resize_in_place(void* block, std::size_t size) { return ThisHeap::resize_in_place(block, size); }
void give_up_cache() { ThisHeap::give_up_cache(); }
bool has_background() { return ThisLibrary::has_background(); }

}  // namespace hz::jemalloc
