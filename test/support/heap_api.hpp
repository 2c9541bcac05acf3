// SPDX-License-Identifier: Apache-2.0
//
// The heap under test by one set of names: the drop-in functions, or hz_* where HZ_TEST_DIRECT is defined.
// Called by tests that are built for both. Arguments and results are opaque, so that no compiler reasons
// about misuse.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "hakozuna/hakozuna.h"
#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"

namespace hz_test::api {

#ifdef HZ_TEST_DIRECT
inline void* Malloc(std::size_t n) { return Opaque(hz_malloc(Opaque(n))); }
inline void* Calloc(std::size_t n, std::size_t size) { return Opaque(hz_calloc(Opaque(n), Opaque(size))); }
inline void* Realloc(void* p, std::size_t n) { return Opaque(hz_realloc(Opaque(p), Opaque(n))); }
inline void* AlignedAlloc(std::size_t a, std::size_t n) {
  return Opaque(hz_aligned_alloc(Opaque(a), Opaque(n)));
}
inline void Free(void* p) { hz_free(Opaque(p)); }
inline void FreeSized(void* p, std::size_t n) { hz_free_sized(Opaque(p), n); }
inline void FreeAlignedSized(void* p, std::size_t a, std::size_t n) {
  hz_free_aligned_sized(Opaque(p), a, n);
}
inline std::size_t UsableSize(void* p) { return hz_usable_size(Opaque(p)); }
inline int Trim() { return hz_trim(0); }
inline const char* LineName() { return hz_line(); }
#else
inline void* Malloc(std::size_t n) { return Opaque(std::malloc(Opaque(n))); }
inline void* Calloc(std::size_t n, std::size_t size) { return Opaque(std::calloc(Opaque(n), Opaque(size))); }
inline void* Realloc(void* p, std::size_t n) { return Opaque(std::realloc(Opaque(p), Opaque(n))); }
inline void* AlignedAlloc(std::size_t a, std::size_t n) { return Opaque(memalign(Opaque(a), Opaque(n))); }
inline void Free(void* p) { std::free(Opaque(p)); }
inline void FreeSized(void* p, std::size_t n) {
  FindFunction<void(void*, std::size_t)>("free_sized")(Opaque(p), n);
}
inline void FreeAlignedSized(void* p, std::size_t a, std::size_t n) {
  FindFunction<void(void*, std::size_t, std::size_t)>("free_aligned_sized")(Opaque(p), a, n);
}
inline std::size_t UsableSize(void* p) { return malloc_usable_size(Opaque(p)); }
inline int Trim() { return malloc_trim(0); }
inline const char* LineName() {
  static auto* const line = FindFunction<const char*()>("hz_line");
  return line == nullptr ? "none" : line();
}
#endif

}  // namespace hz_test::api
