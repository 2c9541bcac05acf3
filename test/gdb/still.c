// SPDX-License-Identifier: Apache-2.0
//
// A program for gdb_test.py to look at. Three threads allocate and free in a way that is known, and the third
// one ends. Then it prints what hz_check finds wrong with some addresses, and the statistics of its heap, and
// nobody moves until its input ends. `still twice` also frees one block twice, which a line that keeps no
// state of slots does not see at the free.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMany = 40, kLeft = 300 };

// Sizes that nobody else asks for. Classes: 320, 1,280, 1,792, 2,560, 15 KiB, 32 KiB and 224 KiB.
enum {
  kTiny = 310,
  kLittle = 1250,
  kSmall = 1700,
  kOther = 2500,
  kTwice = 15000,
  kMedium = 30000,
  kLarge = 200000,
  kHuge = 5 << 20
};

char *live_small[kMany], *live_medium, *live_large, *live_huge;
char *freed_before, *freed_last, *freed_there, *freed_huge, *remote[kMany], *left_behind[kLeft], *twice;
char *heap_live, *heap_freed, *heap_huge;
char foreign[64];
long main_thread, other_thread;
struct {
  int number;
} no_address;
double no_address_either;

static pthread_barrier_t in_turn;

static char* own(size_t size) {
  char* block = malloc(size);
  if (block == NULL) abort();
  return memset(block, 0x5a, size);  // all of it has pages
}

static void* other(void* nothing) {
  other_thread = syscall(SYS_gettid);
  char* before = own(kOther);
  freed_there = own(kOther);
  free(before);
  free(freed_there);
  for (int i = 0; i < kMany; ++i) free(remote[i]);
  pthread_barrier_wait(&in_turn);  // it is done
  pthread_barrier_wait(&in_turn);  // and is not to end
  return nothing;
}

static void* third(void* nothing) {
  for (int i = 0; i < kLeft; ++i) free(left_behind[i]);
  return nothing;
}

static void allocate_and_free(int frees_twice) {
  for (int i = 0; i < kMany; ++i) live_small[i] = own(kSmall);
  for (int i = 0; i < kMany; ++i) remote[i] = own(kTiny);
  for (int i = 0; i < kLeft; ++i) left_behind[i] = own(kLittle);
  live_medium = own(kMedium);
  live_large = own(kLarge);
  live_huge = own(kHuge);
  freed_huge = own(kHuge);
  freed_before = own(kSmall);
  freed_last = own(kSmall);
  free(freed_before);
  free(freed_last);
  twice = own(kTwice);
  char* between = own(kTwice);
  if (!frees_twice) return;
  free(twice);
  free(between);
  free(twice);
}

// In a first-class heap, where the line has any; else by malloc, and nothing is asked of these.
static int in_heap(void) {
  void* (*begin)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "hz_heap_new");
  void* (*allocate)(void*, size_t) = (void* (*)(void*, size_t))dlsym(RTLD_DEFAULT, "hz_heap_malloc");
  void* const heap = begin == NULL || allocate == NULL ? NULL : begin();
  if (heap == NULL) return 0;
  heap_live = memset(allocate(heap, 100), 0x5a, 100);
  heap_freed = allocate(heap, 100);
  heap_huge = allocate(heap, 100000);
  free(heap_freed);
  return 1;
}

#define ASK(address) printf("ask %d %s\n", check((const void*)(address)), #address)

static void ask(int heap) {
  int (*check)(const void*) = (int (*)(const void*))dlsym(RTLD_DEFAULT, "hz_check");
  if (check == NULL) return;
  ASK(live_small[3]);
  ASK(live_small[3] + 5);
  ASK(live_medium);
  ASK(live_medium + 32768);
  ASK(live_large);
  ASK(live_large + 1);
  ASK(live_large + 70000);
  ASK(live_huge);
  ASK(live_huge + 16);
  ASK(live_huge + 5000000);
  ASK(freed_before);
  ASK(freed_last);
  ASK(freed_last + 16);
  ASK(freed_there);
  ASK(freed_huge);
  ASK(freed_huge + 4096);
  ASK(remote[0]);
  ASK(remote[39]);
  ASK(left_behind[5]);
  ASK(twice);
  ASK(foreign);
  ASK(&main_thread);
  if (heap) {
    ASK(heap_live);
    ASK(heap_live + 48);
    ASK(heap_live - 16);
    ASK(heap_live + 1000);
    ASK(heap_freed);
    ASK(heap_huge);
    ASK(heap_huge + 16);
  }
  ASK(0x1234560);
  ASK(((unsigned long)live_small[0] & ~0xffffUL) + 36 * 1792);
}

int main(int count, char** words) {
  static char written[4096];
  setvbuf(stdout, written, _IOFBF, sizeof written);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  main_thread = syscall(SYS_gettid);
  allocate_and_free(count > 1 && strcmp(words[1], "twice") == 0);

  pthread_t thread, ended;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 18);  // gdb writes all of it to a core
  pthread_barrier_init(&in_turn, NULL, 2);
  if (pthread_create(&thread, &small, other, NULL) != 0) return 1;
  pthread_barrier_wait(&in_turn);
  if (pthread_create(&ended, &small, third, NULL) != 0) return 1;
  pthread_join(ended, NULL);
  const int heap = in_heap();  // before its place is free
  free(freed_huge);

  ask(heap);
  fflush(stdout);
  malloc_stats();
  char byte = 0;
  if (write(STDOUT_FILENO, "still\n", 6) != 6) return 1;
  return read(STDIN_FILENO, &byte, 1) < 0;
}
