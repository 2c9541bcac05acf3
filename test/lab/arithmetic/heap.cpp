// SPDX-License-Identifier: Apache-2.0
//
// The ways into the heap on which a size is computed, with all that the compiler has put into them, for
// arithmetic_test.py. Compiled for one line, never run.
#include "export/c_rules.hpp"

using hz::ThisHeap;
using hz::ThisLine;

// What other files of a library have from direct.cpp.
template void* hz::Heap<ThisLine>::calloc_slow(std::size_t, std::size_t);

extern "C" {
void* way_malloc(std::size_t size) { return ThisHeap::malloc(size); }
void* way_calloc(std::size_t count, std::size_t size) { return ThisHeap::calloc(count, size); }
void* way_calloc_slow(std::size_t count, std::size_t size) { return ThisHeap::calloc_slow(count, size); }
void* way_aligned(std::size_t alignment, std::size_t size) { return hz::c_rules::aligned(alignment, size); }
void* way_reallocarray(void* block, std::size_t count, std::size_t size) {
  return hz::c_rules::reallocarray(block, count, size);
}
void* way_aligned_calloc(std::size_t alignment, std::size_t count, std::size_t size) {
  return hz::c_rules::aligned_calloc(alignment, count, size);
}
std::size_t huge_bytes(std::size_t size) { return hz::Huge<ThisLine>::bytes_for(size); }
// The one that is compiled for all callers.
auto* huge_allocate() { return &hz::Huge<ThisLine>::allocate; }
std::size_t bins_count() { return hz::kBins; }
}
