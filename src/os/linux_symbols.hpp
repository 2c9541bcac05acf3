// SPDX-License-Identifier: Apache-2.0
//
// Finds functions by the symbol tables of what is loaded, without a call of the C library: a library that
// wraps dlsym, or the clock, may call us from inside of its wrapper. Called at the start, by dlopen and
// dlsym, and by an operator new that has no memory. Costs a hash look-up for each image.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hz::os {

// Returns what dlsym(RTLD_NEXT, name) would: the default version of that function in the next image behind
// ours, in the order of loading; or in the first image that has it, where ours was loaded late. Returns
// nullptr if there is none, and in a program without a dynamic linker.
void* next_function(const char* name);
// Returns the C library's default version of a function; nullptr if it has none, or is not glibc.
// Requires: the first call comes before another thread can unload a library.
void* c_library_function(const char* name);
// Returns a function of the kernel's vDSO, which begins at `base`; nullptr if it has none, or there is none.
void* vdso_function(std::uintptr_t base, const char* name);

// Returns true if dlsym(RTLD_NEXT, name) of `caller`, which was loaded behind ours, ends at the C library's
// function, or finds none. Takes the loader's lock.
bool is_c_library_next(const void* caller, const char* name);

// Returns the function of that name in the image that holds the address `caller`, or nullptr if that image
// has none or is ours. With `anywhere` the first other image that has it counts, too, also one that was
// loaded with RTLD_LOCAL. Takes the loader's lock.
void* function_near(const void* caller, const char* name, bool anywhere);

struct Symbol {
  std::uintptr_t at = 0;  // 0: there is none
  std::size_t bytes = 0;
};
// Looks up functions and variables in the first image that has the first of them as a function, also one that
// was loaded with RTLD_LOCAL. Returns false if no image has it. Takes the loader's lock.
bool symbols_of_one_image(const char* const* names, Symbol* out, unsigned count);
// Keeps the image that holds this address loaded until the process ends. Returns false if that fails.
bool keep_loaded(const void* inside);

}  // namespace hz::os
