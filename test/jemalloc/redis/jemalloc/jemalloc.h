/* SPDX-License-Identifier: Apache-2.0
 *
 * What Redis needs of jemalloc's header, answered by libhakozuna-je. JEMALLOC_FRAG_HINT makes Redis compile
 * its active defragmentation. Used by ../../defrag_test.py, which builds Debian's sources with
 * USE_SYSTEM_JEMALLOC: then Redis calls the functions by their plain names. */
#pragma once
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#define JEMALLOC_VERSION_MAJOR 5
#define JEMALLOC_VERSION_MINOR 3
#define JEMALLOC_VERSION_BUGFIX 0
#define JEMALLOC_FRAG_HINT
#define MALLOCX_TCACHE_NONE 0x100

void* mallocx(size_t size, int flags);
void dallocx(void* block, int flags);
size_t nallocx(size_t size, int flags);
int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value, size_t new_size);
void malloc_stats_print(void (*write)(void*, const char*), void* argument, const char* options);
