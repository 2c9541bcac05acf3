// SPDX-License-Identifier: Apache-2.0
// A plugin with version 2 inside. What it allocates it frees.
#include <stdlib.h>

int library_version(void);
int used_version(void);

int library_version(void) { return 2; }
int used_version(void) {
  free(malloc(1000));
  return library_version();
}
