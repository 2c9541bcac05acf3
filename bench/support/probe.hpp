// SPDX-License-Identifier: Apache-2.0
//
// Which allocator really serves malloc in this process. Every record carries the answer, because a preload
// that the loader could not find is only a warning, and the run then measures the C library. Call it after
// all measuring: the loader may allocate.
#pragma once

#include <dlfcn.h>

#include <cstring>

namespace hz::bench {

struct AllocatorProbe {
  const char* name;  // the line's name for ours, else the library's file name
  const char* file;  // the path that the loader used
};

inline AllocatorProbe probe_allocator() {
  Dl_info info{};
  void* malloc_symbol = dlsym(RTLD_DEFAULT, "malloc");
  const bool found =
      malloc_symbol != nullptr && dladdr(malloc_symbol, &info) != 0 && info.dli_fname != nullptr;
  const char* file = found ? info.dli_fname : "unknown";
  if (void* line = dlsym(RTLD_DEFAULT, "hz_line"); line != nullptr) {
    return {reinterpret_cast<const char* (*)()>(line)(), file};
  }
  const char* slash = std::strrchr(file, '/');
  return {slash != nullptr ? slash + 1 : file, file};
}

}  // namespace hz::bench
