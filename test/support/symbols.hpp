// SPDX-License-Identifier: Apache-2.0
//
// Functions by their names, as the loader has resolved them for this process.
#pragma once

#include <dlfcn.h>

namespace hz_test {

// nullptr if there is none.
template <class Function>
inline Function* FindFunction(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// The object (library or program) that a function's address lies in; nullptr if there is no such function.
inline void* ObjectOf(const char* function) {
  void* address = dlsym(RTLD_DEFAULT, function);
  Dl_info info = {};
  if (address == nullptr || dladdr(address, &info) == 0) return nullptr;
  return info.dli_fbase;
}

}  // namespace hz_test
