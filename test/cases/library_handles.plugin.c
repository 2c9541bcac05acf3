// SPDX-License-Identifier: Apache-2.0
// A plugin with a calloc of its own, under two names, which no code calls; and what it finds from its place:
// itself, and behind itself the malloc and free that RTLD_DEFAULT finds, or with other ones of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void* calloc(size_t count, size_t size) { return (void*)(count * size * 0); }
extern __typeof__(calloc) address_of_calloc_at __attribute__((alias("calloc")));

int sees_itself(void) {
  void* const all = dlsym(RTLD_DEFAULT, "sees_itself");
  void* const behind = dlsym(RTLD_NEXT, "strdup");
  return all == (void*)sees_itself && behind != NULL && dlsym(RTLD_NEXT, "sees_itself") == NULL;
}

static int is_next_the_first(const char* name) { return dlsym(RTLD_NEXT, name) == dlsym(RTLD_DEFAULT, name); }
int shares_next(void) {
  return is_next_the_first("malloc") && is_next_the_first("free") && is_next_the_first("calloc") &&
         is_next_the_first("malloc_usable_size");
}
int shares_no_next(void) {
  return !is_next_the_first("malloc") && !is_next_the_first("free") && !is_next_the_first("calloc");
}
void frees_by_next(void) {
  void (*const release)(void*) = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  release(strdup("text"));
}
