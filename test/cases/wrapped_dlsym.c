// SPDX-License-Identifier: Apache-2.0
// A library that wraps dlsym and finds the C library's by dlopen, as overlays and recorders do: our dlopen
// must not ask dlsym.
// prints: ^1\.0$
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
  printf("%.1f\n", cosine(0));
  return 0;
}
