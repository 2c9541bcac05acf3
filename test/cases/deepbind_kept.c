// SPDX-License-Identifier: Apache-2.0
// HZ_DEEPBIND=keep leaves RTLD_DEEPBIND in dlopen's flags: the plugin calls its own version of a function
// that another library (the wrapper) has, too. By default the flag is cleared, and the plugin shares our
// heap.
// run: HZ_DEEPBIND=keep 2
// run: HZ_DEEPBIND=clear 1
// run: 1
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  if (plugin == NULL) return puts(dlerror()), 1;
  int (*used_version)(void) = (int (*)(void))dlsym(plugin, "used_version");
  const int version = used_version();
  free(malloc(100));
  if (version != atoi(argv[2])) return printf("version %d\n", version), 1;
  puts("ok");
  return 0;
}
