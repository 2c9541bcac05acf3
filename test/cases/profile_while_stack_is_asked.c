// SPDX-License-Identifier: Apache-2.0
// A thread asks the C library for its own stack, below code that was compiled at run time. glibc allocates
// meanwhile with a lock in its hands, so a sample of that allocation must not ask the same.
//
// run: HZ_PROFILE_HEAP=2 HZ_PROFILE_HEAP_FILE=/dev/null
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6 hz8 secure
// prints: ok
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A function with a frame pointer, and without unwind tables, that calls its argument.
#if defined(__x86_64__)
static const uint8_t kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const uint32_t kCode[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
static const uint8_t kCode[] = {0};
#endif

static void (*call)(void (*)(void));

static void ask(void) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) pthread_attr_destroy(&attributes);
}
static void* ask_often(void* unused) {
  for (int i = 0; i < 100; ++i) call(ask);
  return unused;
}

int main(void) {
  void* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || sizeof kCode == 1) return puts("ok: no such code here"), 0;
  memcpy(page, kCode, sizeof kCode);
  __builtin___clear_cache((char*)page, (char*)page + sizeof kCode);
  memcpy(&call, &page, sizeof call);
  alarm(20);
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask_often, NULL) != 0) return puts("no thread"), 1;
    pthread_join(thread, NULL);
  }
  puts("ok");
  return 0;
}
