// SPDX-License-Identifier: Apache-2.0
// See report_beside_loader.c.
#include <pthread.h>
#include <stdlib.h>

static void* frees_twice(void* block) {
  free(block);
  free(block);
  return NULL;
}

__attribute__((constructor)) static void loaded(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, frees_twice, malloc(300000)) != 0) abort();
  pthread_join(thread, NULL);
}
