// SPDX-License-Identifier: Apache-2.0
// A block that realloc makes larger moves into free memory, if there is too much of that, and does not grow
// behind the end of the heap. (A buffer that grew to 4 MiB a thousand times came to have 3.5 GiB.)
//
// prints: ok
// seconds: 60
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRounds = 8, kBuffers = 1000 };
static const size_t kFreed = 32 << 20, kGrown = 24 << 20, kBuffer = 4 << 20;

static char* touched(char* block, size_t size) {
  if (block == NULL) exit(77);
  for (size_t i = 0; i < size; i += 4096) block[i] = 1;
  return block;
}
// Fails if this process ever had more than that. Allocates nothing.
static void had_at_most(long mib, const char* what) {
  char text[4096];
  const int file = open("/proc/self/status", O_RDONLY);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (length < 0) exit(77);
  close(file);
  text[length] = 0;
  const char* value = strstr(text, "VmHWM:");
  if (value == NULL) exit(77);
  const long kib = atol(value + strlen("VmHWM:"));
  if (kib <= mib << 10) return;
  printf("%ld KiB for %s\n", kib, what);
  exit(1);
}
// A buffer that doubles, again and again.
static void buffers(void) {
  for (int i = 0; i < kBuffers; ++i) {
    char* buffer = NULL;
    for (size_t size = 64 << 10; size <= kBuffer; size *= 2) {
      buffer = realloc(buffer, size);
      touched(buffer + size / 2, size / 2);
    }
    free(buffer);
    had_at_most(24, "a buffer of 4 MiB");
  }
}
// The last block of the heap, above a large free one.
static void last_block(void) {
  // So often that no further return to the system is paid for.
  for (int i = 0; i < kRounds; ++i) free(touched(malloc(kFreed), kFreed));
  char* below = touched(malloc(kFreed), kFreed);
  char* between = malloc(200000);
  char* last = touched(realloc(malloc(200000), 600000), 600000);
  free(below);
  for (size_t size = 1 << 20; size <= kGrown; size += size / 2) {
    last = touched(realloc(last, size), size);
    had_at_most(44, "blocks of 32 and 24 MiB, one after the other");
  }
  free(last);
  free(between);
}

int main(void) {
  buffers();
  last_block();
  puts("ok");
  return 0;
}
