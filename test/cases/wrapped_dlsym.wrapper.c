// SPDX-License-Identifier: Apache-2.0
// dlsym, which asks dlopen and dlvsym for the C library's own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef void* (*Find)(void*, const char*);

void* dlsym(void* library, const char* name) {
  static Find find;
  if (find == NULL) {
    void* const c_library = dlopen("libc.so.6", RTLD_LAZY);
    find = (Find)dlvsym(c_library, "dlsym", "GLIBC_2.34");
    if (find == NULL) find = (Find)dlvsym(c_library, "dlsym", "GLIBC_2.2.5");
    if (find == NULL) find = (Find)dlvsym(c_library, "dlsym", "GLIBC_2.17");
  }
  return find(library, name);
}
