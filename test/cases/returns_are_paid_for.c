// SPDX-License-Identifier: Apache-2.0
// A process of one thread returns no more memory than growth and time pay for, also where its spans have
// tails. (Each span that became free took its tail off the account. So the account was empty, and blocks of
// changing size cost a page fault at nearly each realloc.)
//
// lines: hakozuna
// prints: ok
// seconds: 60
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { kBlocks = 596, kSteps = 100000, kBytesPerSecond = 64000000, kPage = 4096 };
static const size_t kSmall = 17660, kLarge = 52980;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

int main(void) {
  static void* blocks[kBlocks];
  const double began = seconds();
  const long before = faults();
  for (int i = 0; i < kBlocks; ++i)
    if ((blocks[i] = malloc(kSmall)) == NULL) return 77;
  for (int step = 0; step < kSteps; ++step) {
    void** block = &blocks[step % kBlocks];
    void* other = realloc(*block, step / kBlocks % 2 == 0 ? kLarge : kSmall);
    if (other == NULL) return 77;
    *block = other;
  }
  // Tails that go when a span begins are not on the account.
  const long counted = faults() - before,
             most = 48000 + (long)((seconds() - began) * kBytesPerSecond / kPage);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  fprintf(stderr, "%ld page faults of %ld\n", counted, most);
  if (counted > most) return printf("%ld page faults, more than %ld\n", counted, most), 1;
  puts("ok");
  return 0;
}
