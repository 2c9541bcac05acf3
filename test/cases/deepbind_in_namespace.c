// SPDX-License-Identifier: Apache-2.0
// dlmopen into the program's own namespace clears RTLD_DEEPBIND as dlopen does: the plugin shares our heap.
// With HZ_DEEPBIND=keep the plugin has the C library's malloc and free. A library in a namespace of its own
// has a C library of its own, and frees what it allocated.
// run: shared
// run: HZ_DEEPBIND=keep kept
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* (*Make)(size_t);
typedef void (*Release)(void*);

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* const plugin = dlmopen(LM_ID_BASE, argv[1], RTLD_NOW | RTLD_DEEPBIND);
  if (plugin == NULL) return puts(dlerror()), 1;
  const Make make = (Make)dlsym(plugin, "make_block");
  const Release release = (Release)dlsym(plugin, "release_block");
  if (strcmp(argv[2], "shared") == 0) {
    free(make(100));
    release(malloc(100));
  }
  release(make(100));

  void* const apart = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
  if (apart == NULL) return puts(dlerror()), 77;
  const Make make_apart = (Make)dlsym(apart, "make_block");
  ((Release)dlsym(apart, "release_block"))(make_apart(100));
  if (dlmopen(LM_ID_BASE, "/no/such/library", RTLD_NOW) != NULL || dlerror() == NULL)
    return puts("a missing library is an error"), 1;
  puts("ok");
  return 0;
}
