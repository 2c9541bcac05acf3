// SPDX-License-Identifier: Apache-2.0
// malloc_info has its totals beside the heaps, where parsers look for them: "used" is system current + mmap -
// fast - rest, as Tarantool, Milvus and the crate malloc-info compute it.
// prints: ok
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 50000, kBytes = 1000, kLarge = 8, kLargeBytes = 1 << 20 };

static size_t total(const char* xml, const char* element) {
  const char* const at = strstr(xml, element);
  const char* const size = at == NULL ? NULL : strstr(at, "size=\"");
  if (size == NULL) {
    printf("no %s\n", element);
    exit(1);
  }
  return strtoul(size + strlen("size=\""), NULL, 10);
}

int main(void) {
  for (int i = 0; i < kBlocks; ++i) memset(malloc(kBytes), 1, kBytes);
  for (int i = 0; i < kLarge; ++i) memset(malloc(kLargeBytes), 1, kLargeBytes);
  static char text[1 << 16];
  FILE* const stream = fmemopen(text, sizeof text - 1, "w");
  if (malloc_info(0, stream) != 0 || fclose(stream) != 0) return puts("malloc_info fails"), 1;
  const char* xml = text;
  for (const char* next = xml; (next = strstr(next, "</heap>")) != NULL; xml = next) ++next;
  const size_t current = total(xml, "<system type=\"current\""), mapped = total(xml, "<total type=\"mmap\"");
  const size_t free_bytes = total(xml, "<total type=\"fast\"") + total(xml, "<total type=\"rest\"");
  const size_t live = (size_t)kBlocks * kBytes + (size_t)kLarge * kLargeBytes;
  const size_t used = current + mapped - free_bytes;
  if (total(xml, "<system type=\"max\"") < current || total(xml, "<aspace type=\"total\"") < current)
    return puts("max or aspace is below current"), 1;
  if (used < live || used > live + live / 4 || free_bytes > current + mapped)
    return printf("used %zu of %zu, live %zu\n", used, current + mapped, live), 1;
  puts("ok");
  return 0;
}
