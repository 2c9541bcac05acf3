// SPDX-License-Identifier: Apache-2.0
// A C program loads a C++ plugin. Where its operator new has no memory, the plugin's new_handler is called
// and std::bad_alloc thrown, although no C++ runtime was there when our library was bound.
// prints: ok
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  free(malloc(10));
  void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return puts(dlerror()), 1;
  const char* (*failing_step)(size_t) = (const char* (*)(size_t))dlsym(plugin, "failing_step");
  const char* const failed = failing_step((size_t)1 << 62);
  puts(failed == NULL ? "ok" : failed);
  return failed != NULL;
}
