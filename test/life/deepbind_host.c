// SPDX-License-Identifier: Apache-2.0
//
// A library that loads a plugin by a bare name, which only its own RUNPATH ($ORIGIN/inner) finds. Whoever
// takes the place of dlopen must not be taken for the caller. Loaded by deepbind_test.cpp.
#include <dlfcn.h>

void* host_load(const char* name, int flags) {
  void* volatile handle =
      dlopen(name, flags);  // no tail call here: the return address must be in this library
  return handle;
}
