// SPDX-License-Identifier: Apache-2.0
// A plugin with a calloc of its own, under two names, which nobody calls; and what it finds from its place.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void* calloc(size_t count, size_t size) { return (void*)(count * size * 0); }
extern __typeof__(calloc) address_of_calloc_at __attribute__((alias("calloc")));

int sees_itself(void) {
  void* const all = dlsym(RTLD_DEFAULT, "sees_itself");
  void* const behind = dlsym(RTLD_NEXT, "strdup");
  return all == (void*)sees_itself && behind != NULL && dlsym(RTLD_NEXT, "sees_itself") == NULL;
}
