// SPDX-License-Identifier: Apache-2.0
// Children of one process place their blocks apart: what one of them shows does not tell where another's lie.
// lines: secure
// prints: ok
// alone
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kChildren = 3, kBefore = 3000, kBlocks = 2000, kRings = 8 };
static void* blocks[kBefore];

// A sum of the places of some thousand blocks; of the first few that leave the thread's ring, if that is all.
static uint64_t draw(int few) {
  uint64_t sum = 0;
  if (few) {
    for (int i = 1; i < kBefore; i += 74) free(blocks[i]);
    for (int i = 0; i < kRings; ++i) sum = sum * 31 + (uintptr_t)malloc(40);
    return sum;
  }
  for (int i = 0; i < kBlocks; ++i) sum = sum * 31 + (uintptr_t)(blocks[i] = malloc(40));
  for (int i = 0; i < kBlocks; i += 3) free(blocks[i]);
  for (int i = 0; i < kBlocks / 3; ++i) sum = sum * 31 + (uintptr_t)malloc(40);
  return sum;
}

static int are_apart(int bare, int few) {
  uint64_t sums[kChildren];
  for (int i = 0; i < kChildren; ++i) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    const long child = bare ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
      const uint64_t sum = draw(few);
      _exit(write(ends[1], &sum, sizeof sum) != sizeof sum);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &sums[i], sizeof sums[i]) != sizeof sums[i]) abort();
    waitpid((pid_t)child, NULL, 0);
    close(ends[0]);
    for (int before = 0; before < i; ++before)
      if (sums[before] == sums[i]) return printf("bare %d few %d: two children agree\n", bare, few), 0;
  }
  return 1;
}

int main(void) {
  for (int i = 0; i < kBefore; ++i) blocks[i] = malloc(40);
  for (int i = 0; i < kBefore; i += 2) free(blocks[i]);
  const int apart = are_apart(0, 0) & are_apart(0, 1) & are_apart(1, 0) & are_apart(1, 1);
  if (apart) puts("ok");
  return !apart;
}
