// SPDX-License-Identifier: Apache-2.0
//
// A dlsym that finds our malloc and free where the C library's finds its own. Every library depends on the C
// library, so a look-up of "free" in one of them ends there: ctypes.CDLL("libc.so.6").free is the C
// library's, and would be called with blocks of ours. So does a look-up behind a library that was loaded
// after us (RTLD_NEXT). With HZ_DEEPBIND=keep it stays so. Called by programs in place of the C library's
// dlsym. Cost: of a look-up in or behind a library, a compare of the name with 25 others.
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

#include <atomic>

#include "base/text.hpp"
#include "export/line.hpp"
#include "os/linux_symbols.hpp"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
__attribute__((visibility("hidden"))) void* hz_own_realloc(void*, size_t);
void __libc_free(void*);
void* __libc_memalign(size_t, size_t);
void* __libc_valloc(size_t);
void* __libc_pvalloc(size_t);
int __posix_memalign(void**, size_t, size_t);
struct mallinfo2 mallinfo2(void);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // mallinfo

namespace {

using Find = void* (*)(void*, const char*);
constinit std::atomic<Find> known{nullptr};

template <auto* kFunction>
void* ours() {
  return reinterpret_cast<void*>(kFunction);
}
struct Function {
  const char* name;
  void* (*address)();
};
// Not those that call the function that they stand for, such as dlopen: a library that wraps it may look for
// the real one so, and would call itself.
constexpr Function kFunctions[] = {{"malloc", ours<&malloc>},
                                   {"calloc", ours<&calloc>},
                                   {"realloc", ours<&hz_own_realloc>},
                                   {"free", ours<&free>},
                                   {"reallocarray", ours<&reallocarray>},
                                   {"posix_memalign", ours<&posix_memalign>},
                                   {"aligned_alloc", ours<&aligned_alloc>},
                                   {"memalign", ours<&memalign>},
                                   {"valloc", ours<&valloc>},
                                   {"pvalloc", ours<&pvalloc>},
                                   {"malloc_usable_size", ours<&malloc_usable_size>},
                                   {"malloc_trim", ours<&malloc_trim>},
                                   {"mallopt", ours<&mallopt>},
                                   {"mallinfo", ours<&mallinfo>},
                                   {"mallinfo2", ours<&mallinfo2>},
                                   {"malloc_info", ours<&malloc_info>},
                                   {"malloc_stats", ours<&malloc_stats>},
                                   {"__libc_malloc", ours<&__libc_malloc>},
                                   {"__libc_calloc", ours<&__libc_calloc>},
                                   {"__libc_realloc", ours<&__libc_realloc>},
                                   {"__libc_free", ours<&__libc_free>},
                                   {"__libc_memalign", ours<&__libc_memalign>},
                                   {"__libc_valloc", ours<&__libc_valloc>},
                                   {"__libc_pvalloc", ours<&__libc_pvalloc>},
                                   {"__posix_memalign", ours<&__posix_memalign>}};

HZ_COLD void* own_function(const char* name) {
  const hz::TextView wanted(name);
  for (const Function& one : kFunctions)
    if (wanted == one.name) return one.address();
  return nullptr;
}

HZ_INLINE Find next_dlsym() {
  const Find find = known.load(std::memory_order_relaxed);
  if (HZ_LIKELY(find != nullptr)) return find;
  const auto next = reinterpret_cast<Find>(hz::os::next_function("dlsym"));
  known.store(next, std::memory_order_relaxed);
  return next;
}

// Finds a symbol of a library by its handle. The malloc that a plugin defines is found unchanged.
HZ_COLD void* find_in(Find next, void* handle, const char* name, void* ours) {
  void* const found = next(handle, name);
  const bool is_theirs = found != nullptr && found == hz::os::c_library_function(name);
  return is_theirs && !hz::ThisLibrary::keeps_deepbind() ? ours : found;
}

// For RTLD_NEXT.
HZ_COLD bool is_found_behind(const void* caller, const char* name) {
  return !hz::ThisLibrary::keeps_deepbind() && hz::os::is_c_library_next(caller, name);
}

// While there is one thread, and nothing can be unloaded.
__attribute__((constructor)) void at_load() {
  next_dlsym();
  hz::os::c_library_function("malloc");
}

}  // namespace

// The C library looks for what RTLD_NEXT and RTLD_DEFAULT mean in the object that the return address lies in:
// see dlopen.cpp. A program without a dynamic linker has no next dlsym: the answer is null.
HZ_EXPORT void* dlsym(void* handle, const char* name) noexcept {
  const Find next = next_dlsym();
  if (next == nullptr) return nullptr;
  if (handle != RTLD_DEFAULT) {
    void* const ours = own_function(name);
    if (ours != nullptr && handle != RTLD_NEXT) return find_in(next, handle, name, ours);
    if (ours != nullptr && is_found_behind(__builtin_return_address(0), name)) return ours;
  }
  return next(handle, name);
}
