// SPDX-License-Identifier: Apache-2.0
//
// subject WHAT [N]: a program with one bug, or none, of whose allocations some or all lie on guarded pages.
// Run by guarded_test.cpp with the library preloaded. Says "done" at its end; exits with 3 if a block is not
// what it should be.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void require(int holds, int line) {
  if (holds) return;
  fprintf(stderr, "subject: line %d does not hold\n", line);
  _exit(3);
}
#define REQUIRE(what) require((what) != 0, __LINE__)

static volatile char sink;
static char* volatile block;

__attribute__((noinline)) static void allocate_here(size_t size) {
  block = malloc(size);
  memset(block, 1, size);
  sink = 0;  // no tail call: its frame is in the report
}
__attribute__((noinline)) static void free_here(void) {
  free(block);
  sink = 0;
}

// N allocations, of each of which the byte behind it is written. Where one is not guarded, that byte is still
// in its slot, and nobody is hurt.
static void overflows(int count) {
  for (int i = 0; i < count; ++i) {
    allocate_here(40);
    block[40] = 7;
    free_here();
  }
}

static void* free_it(void* what) {
  free(what);
  return NULL;
}
static void run(void* (*what)(void*), void* with) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, what, with) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
}

// Blocks of all sizes that keep what was written to them, whatever is done with them.
static unsigned char* fresh(size_t size, unsigned char with) {
  unsigned char* at = NULL;
  if (with % 3 == 0) {
    at = calloc(size, 1);
    for (size_t i = 0; i < size; ++i) REQUIRE(at[i] == 0);
  } else if (with % 3 == 1) {
    const size_t alignment = (size_t)8 << with % 10;
    REQUIRE(posix_memalign((void**)&at, alignment, size) == 0);
    REQUIRE((uintptr_t)at % alignment == 0);
  } else {
    at = malloc(size);
  }
  REQUIRE(at != NULL && (uintptr_t)at % 16 == 0);
  REQUIRE(malloc_usable_size(at) >= size);
  memset(at, with, malloc_usable_size(at));
  return at;
}
static void check(const unsigned char* at, size_t size, unsigned char with) {
  for (size_t i = 0; i < size; ++i) REQUIRE(at[i] == with);
}
static void* churn(void* seed) {
  enum { kBlocks = 40 };
  unsigned char* at[kBlocks] = {NULL};
  size_t size[kBlocks];
  unsigned random = (unsigned)(uintptr_t)seed;
  for (int i = 0; i < 3000; ++i) {
    random = random * 1103515245 + 12345;
    const unsigned k = random >> 16 & 31, with = k + 1;
    if (at[k] == NULL) {
      size[k] = 1 + (random >> 8) % 5000;
      at[k] = fresh(size[k], (unsigned char)with);
    } else if (random >> 24 & 1) {
      const size_t to = 1 + (random >> 8) % 6000;
      check(at[k], size[k], (unsigned char)with);
      at[k] = realloc(at[k], to);
      check(at[k], to < size[k] ? to : size[k], (unsigned char)with);
      memset(at[k], (int)with, to);
      size[k] = to;
    } else {
      check(at[k], size[k], (unsigned char)with);
      free(at[k]);
      at[k] = NULL;
    }
  }
  for (int k = 0; k < kBlocks; ++k) free(at[k]);
  return NULL;
}
static void threads(void) {
  pthread_t thread[4];
  for (uintptr_t i = 0; i < 4; ++i) REQUIRE(pthread_create(&thread[i], NULL, churn, (void*)(i + 1)) == 0);
  for (int i = 0; i < 4; ++i) REQUIRE(pthread_join(thread[i], NULL) == 0);
}

// More than there are pages for.
static void many(void) {
  enum { kMany = 2000 };
  static unsigned char* at[kMany];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kMany; ++i) at[i] = fresh(20 + (size_t)i % 100, (unsigned char)i);
    for (int i = 0; i < kMany; ++i) {
      check(at[i], 20 + (size_t)i % 100, (unsigned char)i);
      free(at[i]);
    }
  }
}

static struct sigaction before;
static void hand_on(int number, siginfo_t* what, void* context) {
  static const char text[] = "subject: its handler\n";
  if (write(2, text, sizeof text - 1) < 0) _exit(4);
  if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(number, what, context);
}
static void with_handler(void) {
  struct sigaction own = {0};
  own.sa_sigaction = hand_on;
  own.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGSEGV, &own, &before) == 0);
}

int main(int argc, char** argv) {
  const char* const what = argv[1];
  const int count = argc > 2 ? atoi(argv[2]) : 1;
#define IS(name) (strcmp(what, name) == 0)
  if (IS("overflows")) {
    overflows(count);
  } else if (IS("overflow")) {
    allocate_here(48);
    block[48] = 7;
    free_here();
  } else if (IS("overflow-odd")) {  // up to where a block of 16 would end nothing is guarded: found at the
                                    // free
    allocate_here(33);
    block[33] = 7;
    free_here();
  } else if (IS("underflow")) {
    allocate_here(48);
    block[-1] = 7;
    free_here();
  } else if (IS("read-after-free")) {
    allocate_here(48);
    free_here();
    sink = block[3];
  } else if (IS("write-after-free")) {
    allocate_here(4000);
    free_here();
    block[3999] = 7;
  } else if (IS("double-free")) {
    allocate_here(48);
    free_here();
    free_here();
  } else if (IS("interior")) {
    allocate_here(48);
    free(block + 16);
  } else if (IS("in-the-child")) {
    allocate_here(48);
    const pid_t pid = fork();
    if (pid == 0) {
      check((unsigned char*)block, 48, 1);
      free_here();
      allocate_here(48);
      free_here();
      sink = block[3];
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    check((unsigned char*)block, 48, 1);
    free_here();
  } else if (IS("freed-elsewhere")) {
    allocate_here(48);
    run(free_it, block);
    sink = block[3];
  } else if (IS("usable-size")) {
    for (size_t size = 1; size < 200; ++size) {
      char* const at = malloc(size);
      REQUIRE(malloc_usable_size(at) == size);  // or the program could write over the end
      free(at);
    }
  } else if (IS("threads")) {
    threads();
  } else if (IS("many")) {
    many();
  } else if (IS("handler")) {
    with_handler();
    allocate_here(48);
    free_here();
    sink = block[3];
  } else if (IS("own-fault")) {
    allocate_here(48);
    sink = *(volatile char*)(uintptr_t)count;
  } else if (IS("goes-on")) {
    allocate_here(48);
    free_here();
    sink = block[3];
    free_here();
    allocate_here(33);
    block[33] = 7;
    free_here();
    many();
  } else {
    return 2;
  }
  fprintf(stderr, "done\n");
  return 0;
}
