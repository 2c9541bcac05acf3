// SPDX-License-Identifier: Apache-2.0
// Arrays that grow by a fixed number of bytes cost time by their length, not by its square: one alone, and
// two in turn, neither of which can grow where it is. What was in them stays.
// prints: ^ok
// seconds: 30
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kArrays = 2 };

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

// The first byte of each step tells which array and which step it is.
static unsigned char mark(size_t step, int array) { return (unsigned char)(step * 7 + (size_t)array + 1); }

static int grow(size_t step, size_t end, int arrays) {
  unsigned char* array[kArrays] = {0};
  for (size_t n = 1; n * step <= end; ++n) {
    for (int i = 0; i < arrays; ++i) {
      unsigned char* larger = realloc(array[i], n * step);
      if (larger == NULL) return printf("no memory for %zu bytes\n", n * step), 1;
      array[i] = larger;
      larger[(n - 1) * step] = mark(n, i);
    }
  }
  for (int i = 0; i < arrays; ++i) {
    for (size_t n = 1; n * step <= end; ++n)
      if (array[i][(n - 1) * step] != mark(n, i)) return printf("step %zu of array %d is lost\n", n, i), 1;
    array[i] = realloc(array[i], end / 3);
    for (size_t n = 1; n * step <= end / 3; ++n)
      if (array[i][(n - 1) * step] != mark(n, i)) return printf("step %zu is lost in a shrink\n", n), 1;
    free(array[i]);
  }
  return 0;
}

int main(void) {
  static const struct {
    size_t step, end;
    int arrays;
    double most;  // seconds of a processor; several times what it takes
  } kCases[] = {
      {8, 1 << 20, 1, 0.5},     {4096, 24 << 20, 1, 0.5},  {65536, 100 << 20, 1, 0.5},
      {4096, 24 << 20, 2, 0.7}, {65536, 64 << 20, 2, 0.5}, {1 << 20, 256 << 20, 2, 0.5},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    const double before = seconds();
    if (grow(kCases[i].step, kCases[i].end, kCases[i].arrays) != 0) return 1;
    const double taken = seconds() - before;
    if (taken > kCases[i].most) {
      printf("%d by steps of %zu to %zu: %.2f s\n", kCases[i].arrays, kCases[i].step, kCases[i].end, taken);
      return 1;
    }
  }
  puts("ok");
  return 0;
}
