// SPDX-License-Identifier: Apache-2.0
// operator new without memory in a process that has no C++ runtime at all: the process ends with a reason.
// prints: hz: fatal: operator new: no memory for 4611686018427387904 bytes
// exits: -6
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(void) {
  free(malloc(10));
  void* (*operator_new)(size_t) = (void* (*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
  free(operator_new((size_t)1 << 62));
  return 0;
}
