// SPDX-License-Identifier: Apache-2.0
//
// The reference of the lanes on Windows: the names of the direct API that they call, and behind them the
// malloc of the C library that the program was loaded with. A jump more for each call than the program of a
// line has.
#include <malloc.h>
#include <windows.h>

#include <cstdlib>
#include <cstring>

#include "hakozuna/hakozuna.h"

// Where the loader has put the address of malloc.
extern "C" void* (*__imp_malloc)(size_t);

extern "C" {

void* hz_malloc(size_t size) { return std::malloc(size); }
void* hz_realloc(void* p, size_t size) { return std::realloc(p, size); }
void hz_free(void* p) { std::free(p); }
void* hz_aligned_alloc(size_t alignment, size_t size) { return _aligned_malloc(size, alignment); }
void hz_free_aligned_sized(void* p, size_t, size_t) { _aligned_free(p); }

// The file that the C library's malloc is in.
const char* hz_line() {
  static char path[MAX_PATH + 1];
  HMODULE library = nullptr;
  constexpr DWORD kByAddress =
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (GetModuleHandleExA(kByAddress, reinterpret_cast<const char*>(__imp_malloc), &library) == 0 ||
      GetModuleFileNameA(library, path, MAX_PATH) == 0)
    return "unknown";
  const char* slash = std::strrchr(path, '\\');
  return slash != nullptr ? slash + 1 : path;
}

}  // extern "C"
