// SPDX-License-Identifier: Apache-2.0
// A library without symbols may have a hash table of no buckets, which the C library's loader skips. So does
// the heap when it looks for a function in all libraries: for get_new_handler when operator new fails, and
// for an unwinder and Python's functions when a heap profile begins.
// run:
// run: HZ_PROFILE_HEAP=64 HZ_PROFILE_HEAP_FILE=/dev/null
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char image[1 << 20];

// Sets the count of buckets to 0. The first segment of a library has its tables at their offsets in the file.
static int empty_hash_table(size_t bytes) {
  const ElfW(Ehdr)* const header = (const void*)image;
  const ElfW(Phdr)* const parts = (const void*)(image + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn)* entry = (const void*)(image + parts[i].p_offset);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag != DT_GNU_HASH || entry->d_un.d_ptr + sizeof(uint32_t) > bytes) continue;
      memset(image + entry->d_un.d_ptr, 0, sizeof(uint32_t));
      return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char copy[] = "/tmp/hz-case-XXXXXX";
  const int from = open(argv[1], O_RDONLY), to = mkstemp(copy);
  const ssize_t bytes = read(from, image, sizeof image);
  if (to < 0 || bytes <= 0 || !empty_hash_table((size_t)bytes)) return unlink(copy), 77;
  if (write(to, image, (size_t)bytes) != bytes) return unlink(copy), 2;
  close(to);
  void* const plugin = dlopen(copy, RTLD_NOW | RTLD_GLOBAL);
  unlink(copy);
  if (plugin == NULL) return puts(dlerror()), 1;
  void* (*const new_nothrow)(size_t, const void*) =
      (void* (*)(size_t, const void*))dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t");
  if (new_nothrow == NULL) return 77;  // other names where size_t is no unsigned long
  const char nothrow = 0;
  if (new_nothrow((size_t)1 << 62, &nothrow) != NULL) return 3;
  for (size_t i = 0; i < 1000; ++i) free(malloc(i * 10));
  return puts("ok"), 0;
}
