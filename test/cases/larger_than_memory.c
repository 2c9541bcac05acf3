// SPDX-License-Identifier: Apache-2.0
// A block that is larger than all memory and swap of the machine is refused, as by the C library: a program
// that takes a length from a file hears of it, and is not killed when it writes. A quarter of the memory is
// granted. Nothing is touched. Skipped where the system is told to promise anything.
// prints: ok
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

static int refused(const char* how, void* block) {
  if (block == NULL && errno == ENOMEM) return 1;
  printf("%s: %p, errno %d\n", how, block, errno);
  return 0;
}

int main(void) {
  FILE* const file = fopen("/proc/sys/vm/overcommit_memory", "r");
  int promises = '1';
  if (file != NULL) promises = getc(file), fclose(file);
  struct sysinfo machine;
  if (promises == '1' || sysinfo(&machine) != 0) return puts("it promises anything"), 77;
  const size_t all = (machine.totalram + machine.totalswap) * machine.mem_unit;
  int right = refused("malloc", malloc(2 * all));
  right &= refused("calloc", calloc(2, all));
  right &= refused("aligned_alloc", aligned_alloc(4096, 2 * all));
  void* block = malloc(1 << 20);
  right &= refused("realloc", realloc(block, 2 * all));
  block = realloc(block, machine.totalram / 4 * machine.mem_unit);
  if (block == NULL) right = 0, puts("a quarter is refused");
  free(block);
  if (right) puts("ok");
  return right ? 0 : 1;
}
