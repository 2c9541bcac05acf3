// SPDX-License-Identifier: Apache-2.0
//
// reallocarray calls the realloc that the program uses, as glibc's does. A program may have a malloc of its
// own that lacks reallocarray, as jemalloc and tcmalloc do. The free of that malloc must get blocks of that
// malloc. A file of its own: beside the definition of realloc a compiler takes that one. Cost: a jump through
// a pointer.
#include <stdlib.h>

#include "export/c_rules.hpp"

HZ_EXPORT void* reallocarray(void* ptr, size_t count, size_t size) {
  return hz::c_rules::reallocarray(ptr, count, size, &realloc);
}
