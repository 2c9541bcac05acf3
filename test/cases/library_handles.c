// SPDX-License-Identifier: Apache-2.0
// Who looks up the C library's malloc and free in a library by its handle, as interfaces to foreign functions
// do (ctypes.CDLL("libc.so.6").free), gets ours, and frees by it what strdup made. Other functions are found
// as before: of a library that has a malloc of its own, behind the caller (RTLD_NEXT), everywhere
// (RTLD_DEFAULT), by a version. A plugin finds ours behind itself, too. With HZ_DEEPBIND=keep they are the C
// library's.
// run: shared
// run: HZ_DEEPBIND=clear shared
// run: HZ_DEEPBIND=keep kept
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;
static void expect(int right, const char* what) {
  if (!right) printf("wrong: %s\n", what), failed = 1;
}

static const char* const kNames[] = {
    "malloc",         "calloc",        "realloc",     "free",         "memalign",      "mallopt",
    "posix_memalign", "aligned_alloc", "valloc",      "pvalloc",      "malloc_trim",   "malloc_usable_size",
    "mallinfo",       "mallinfo2",     "malloc_info", "malloc_stats", "__libc_malloc", "__libc_free"};

static void look(void* handle, int shared) {
  for (unsigned i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    void* const found = dlsym(handle, kNames[i]);
    expect((found == dlsym(RTLD_DEFAULT, kNames[i])) == shared, kNames[i]);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int shared = strcmp(argv[2], "shared") == 0;
  void* const c = dlopen("libc.so.6", RTLD_NOW);
  if (c == NULL) return puts(dlerror()), 1;
  look(c, shared);
  char* (*duplicate)(const char*) = (char* (*)(const char*))dlsym(c, "strdup");
  void (*release)(void*) = (void (*)(void*))dlsym(c, "free");
  void* (*make)(size_t) = (void* (*)(size_t))dlsym(c, "malloc");
  if (shared) {
    for (int i = 0; i < 1000; ++i) release(duplicate("text"));
    free(make(100));
  } else {
    free(duplicate("text"));
  }
  release(make(100));

  void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return puts(dlerror()), 1;
  void* (*own_calloc)(size_t, size_t) = (void* (*)(size_t, size_t))dlsym(plugin, "calloc");
  expect((void*)own_calloc == dlsym(plugin, "address_of_calloc_at"),
         "a function that the library has itself");
  expect((dlsym(plugin, "free") == dlsym(RTLD_DEFAULT, "free")) == shared, "what the library depends on");
  int (*sees_itself)(void) = (int (*)(void))dlsym(plugin, "sees_itself");
  expect(sees_itself(), "RTLD_DEFAULT and RTLD_NEXT of a plugin");
  int (*shares)(void) = (int (*)(void))dlsym(plugin, shared ? "shares_next" : "shares_no_next");
  expect(shares(), "malloc and free behind a plugin");
  if (shared) ((void (*)(void))dlsym(plugin, "frees_by_next"))();

  dlerror();
  expect(dlsym(c, "no_such_function") == NULL && dlerror() != NULL, "an error is told");
  expect(dlvsym(c, "strlen", "GLIBC_2.2.5") != NULL || dlvsym(c, "strlen", "GLIBC_2.17") != NULL, "versions");
  expect(dlsym(c, "dlopen") != NULL && dlsym(c, "gnu_get_libc_version") != NULL, "other functions");
  dlclose(plugin);
  dlclose(c);
  if (!failed) puts("ok");
  return failed;
}
