// SPDX-License-Identifier: Apache-2.0
//
// own_heap SECONDS: a program as those in Rust that bring mimalloc along: nearly all of its memory, 64 MiB,
// comes from a heap of its own under names of its own, and a few small blocks from malloc. For the launcher's
// and the lab's tests.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) void* mi_heap_malloc(size_t size) {
  return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char** argv) {
  const size_t size = (size_t)64 << 20;
  void* memory = mi_heap_malloc(size);
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, size);
  for (int i = 0; i < 7; ++i) {
    void* volatile block = malloc(100 + (size_t)i);
    free(block);
  }
  usleep((useconds_t)(argc > 1 ? atof(argv[1]) * 1e6 : 0));
  return 0;
}
