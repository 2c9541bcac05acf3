// SPDX-License-Identifier: Apache-2.0
//
// A program that allocates: linked with an archive of a line and stripped, it still has the probes
// (probes.py).
#include <stdlib.h>

int main(void) {
  void* volatile block = malloc(100);
  free(block);
}
