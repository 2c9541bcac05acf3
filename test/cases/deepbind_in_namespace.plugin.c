// SPDX-License-Identifier: Apache-2.0
// A plugin that allocates and frees.
#include <stdlib.h>

void* make_block(size_t size) { return malloc(size); }
void release_block(void* block) { free(block); }
