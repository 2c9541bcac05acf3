// SPDX-License-Identifier: Apache-2.0
//
// asks_jemalloc [SECONDS]: prints which jemalloc answers mallctl, as redis-server does when it starts, and
// then sleeps. For the launcher's tests.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int mallctl(const char* name, void* old, size_t* old_size, void* new_value, size_t new_size);

int main(int argc, char** argv) {
  const char* version = "none";
  size_t size = sizeof version;
  if (mallctl("version", &version, &size, NULL, 0) != 0) return 1;
  puts(version);
  fflush(stdout);
  usleep((useconds_t)(argc > 1 ? atof(argv[1]) * 1e6 : 0));
  return 0;
}
