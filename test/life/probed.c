// SPDX-License-Identifier: Apache-2.0
//
// The program whose heap probes_test.py watches: it does what each probe tells of, so many times, and says at
// its end what it did, and what the heap counted until then. It ends at once, so that nothing happens after
// that.
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hakozuna/hakozuna.h"

enum { kHuge = 5, kSmall = 500, kSmallBytes = 5000 };
static const size_t kMiB = (size_t)1 << 20;

int main(void) {
  static void* small[kSmall];
  for (int i = 0; i < kSmall; ++i) small[i] = malloc(kSmallBytes);
  char* const block = small[0];
  const size_t class_bytes = malloc_usable_size(block);
  free(block + 16);  // reported, and left alone
  for (int i = 0; i < kSmall; ++i) free(small[i]);

  void* huge[kHuge];
  for (int i = 0; i < kHuge; ++i) huge[i] = malloc((size_t)(8 + i) * kMiB);
  for (int i = 0; i < kHuge; ++i) free(huge[i]);
  malloc_trim(0);

  void* const beyond_soft = malloc(100 * kMiB);
  void* const beyond_hard = malloc(1000 * kMiB);
  free(beyond_soft);

  void (*stats)(hz_stats_t*, size_t) = (void (*)(hz_stats_t*, size_t))dlsym(RTLD_DEFAULT, "hz_stats");
  hz_stats_t s = {0};
  if (stats != NULL) stats(&s, sizeof s);
  static char text[4096];
  setvbuf(stdout, text, _IOFBF, sizeof text);
  for (int i = 0; i < kHuge; ++i)
    printf("huge %ju %zu\n", (uintmax_t)(uintptr_t)huge[i], (size_t)(8 + i) * kMiB);
  printf("small %zu %d\n", class_bytes, kSmall);
  printf("inside %ju\n", (uintmax_t)(uintptr_t)(block + 16));
  printf("soft %d %zu\n", beyond_soft != NULL, 100 * kMiB);
  printf("hard %d %zu\n", beyond_hard != NULL, 1000 * kMiB);
  printf("spans %ju %ju\n", (uintmax_t)s.spans_acquired, (uintmax_t)s.spans_retired);
  fflush(stdout);
  _exit(0);
}
