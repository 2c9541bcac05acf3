// SPDX-License-Identifier: Apache-2.0
//
// A plugin as programs load it: it takes malloc and free from wherever the dynamic linker finds them for it.
// Loaded by deepbind_test.cpp and late_test.cpp, under several names.
#include <stdlib.h>
#include <string.h>

void plugin_free(void* block) { free(block); }
void* plugin_make(size_t size) { return malloc(size); }
char* plugin_copy(const char* text) { return strdup(text); }
int plugin_mark(void) { return 4711; }
