// SPDX-License-Identifier: Apache-2.0
// A filter refuses mremap(2). Large blocks that grow are copied, and no addresses stay behind.
//
// prints: ok
// alone
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { kMiB = 1 << 20, kBefore = 6 * kMiB, kAfter = 14 * kMiB, kRounds = 100, kMostKiB = 256 << 10 };

static int refuse_moves(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
static long address_space_kib(void) {
  long kib = -1;
  char line[256];
  FILE* const file = fopen("/proc/self/status", "r");
  if (file == NULL) exit(77);
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmSize: %ld", &kib) == 1) break;
  fclose(file);
  return kib;
}

int main(void) {
  if (!refuse_moves()) return 77;
  const long before = address_space_kib();
  for (int i = 0; i < kRounds; ++i) {
    char* block = malloc(kBefore);
    if (block == NULL) return puts("no block"), 1;
    block[kBefore - 1] = 7;
    char* const grown = realloc(block, kAfter);
    if (grown == NULL || grown[kBefore - 1] != 7) return puts("not grown"), 1;
    free(grown);
  }
  const long more = address_space_kib() - before;
  if (before < 0 || more > kMostKiB) return printf("%ld KiB of addresses stay\n", more), 1;
  return puts("ok"), 0;
}
