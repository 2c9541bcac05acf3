// SPDX-License-Identifier: Apache-2.0
//
// What operator new needs of the C++ runtime when memory is short: its new_handler and its exception. The
// runtime may be loaded late, out of our sight (a C program with a C++ plugin), or stand in the calling
// plugin alone: so it is looked for at the time, first in the image that calls. In a separate file, because
// it is the only one that is compiled with exceptions.
#pragma once

#include <cstddef>

namespace hz {

// The standard's loop around `allocate(size, alignment)`, which has failed: returns a block as soon as the
// new_handler of `caller` has made room for one. Without a handler it throws std::bad_alloc; with no runtime
// that could throw it reports that and ends the process.
using Allocate = void* (*)(std::size_t size, std::size_t alignment);
void* new_after_failure(Allocate allocate, std::size_t size, std::size_t alignment, const void* caller);
// The same for the nothrow forms: returns nullptr instead, also if the handler throws.
void* new_after_failure_nothrow(Allocate allocate, std::size_t size, std::size_t alignment,
                                const void* caller) noexcept;

// Returns what `allocate`, an operator new of the program, returns, or nullptr if it throws.
void* try_new(Allocate allocate, std::size_t size, std::size_t alignment, const void* caller) noexcept;

}  // namespace hz
