/* SPDX-License-Identifier: Apache-2.0
 *
 * A DLL of a program's, which imports the C runtime itself and knows nothing of us: what it allocates the
 * program frees, and the other way round. Loaded by program_test.cpp.
 */
#include <stdlib.h>

__declspec(dllexport) void* plugin_malloc(size_t size);
__declspec(dllexport) void plugin_free(void* block);

void* plugin_malloc(size_t size) { return malloc(size); }
void plugin_free(void* block) { free(block); }
