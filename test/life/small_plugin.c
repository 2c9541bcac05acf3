// SPDX-License-Identifier: Apache-2.0
//
// What small_program.c loads: a plugin that allocates, by the heap of the program.
#include <stdlib.h>

void* hz_plugin_make(size_t size) { return malloc(size); }
