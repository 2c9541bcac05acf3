// SPDX-License-Identifier: Apache-2.0
//
// The parent's library: it links with ours, and another project links with it.
#include <hakozuna/hakozuna.h>

bool wrapper_works() {
  void* block = hz_malloc(100);
  const bool ours = hz_owns(block) != 0;
  hz_free(block);
  return ours;
}
