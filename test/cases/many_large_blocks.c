// SPDX-License-Identifier: Apache-2.0
// The time of 16,000 large blocks is in proportion to their number. (Line hz7 looked through all regions that
// had something free for each block: 14 s.)
// seconds: 7
// prints: ok
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  enum { kBlocks = 16000 };
  static char* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(3000000);
    if (blocks[i] == NULL) return 77;  // fewer addresses
    blocks[i][0] = 1;
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  puts("ok");
  return 0;
}
