// SPDX-License-Identifier: Apache-2.0
//
// What jemalloc's functions ask of the heap that no function of ours with a C name does. Called by
// functions.cpp and control.cpp, which else go by those; apart from them, because what knows the heap takes
// seconds to compile.
#pragma once

#include <cstddef>

namespace hz::jemalloc {

// What would be usable in a block of that size and alignment, a power of two; 0: there is no such block.
std::size_t good_size(std::size_t alignment, std::size_t size);
// The block where it lies, with room for `size` bytes if it can have that there: what it has then.
std::size_t resize_in_place(void* block, std::size_t size);
// What the calling thread caches returns to its spans.
void give_up_cache();
// Whether a thread of ours may return memory while the program is idle.
bool has_background();

}  // namespace hz::jemalloc
