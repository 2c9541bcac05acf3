// SPDX-License-Identifier: Apache-2.0
//
// libjemalloc.so.2 as a program finds it that is linked with it, with one function: mallctl names its
// version. For the launcher's tests.
#include <stddef.h>

int mallctl(const char* name, void* old, size_t* old_size, void* new_value, size_t new_size);

int mallctl(const char* name, void* old, size_t* old_size, void* new_value, size_t new_size) {
  (void)name, (void)old_size, (void)new_value, (void)new_size;
  *(const char**)old = "another's";
  return 0;
}
