// SPDX-License-Identifier: Apache-2.0
//
// subject WHAT [N]: a program with one bug, or none, of whose allocations some or all lie on guarded pages.
// Run by guarded_test.cpp with the library preloaded. Says "done" at its end; exits with 3 if a block is not
// what it should be.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
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
  for (int i = 0; i < 1000; ++i) {
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

// --- the library's own functions

static void* function(const char* name) {
  void* const at = dlsym(RTLD_DEFAULT, name);
  REQUIRE(at != NULL);
  return at;
}
static void set_guard_sample(const char* value) {
  int (*const ctl)(const char*, const char*, char*, size_t) =
      (int (*)(const char*, const char*, char*, size_t))function("hz_ctl");
  char is[64];
  REQUIRE(ctl("guard_sample", value, is, sizeof is) == 0);
  REQUIRE(strcmp(is, value) == 0);
}
static int is_guarded(void) { return malloc_usable_size(block) == 33; }  // else it has its class's size

// A thread learns of it when it has used what it caches.
static void begin(const char* every) {
  set_guard_sample(every);
  for (int i = 0; i < 10000; ++i) {
    allocate_here(33);
    if (is_guarded()) return free_here();
  }
  REQUIRE(!"it has begun");
}
static void late(void) {
  enum { kBlocks = 100 };
  char* kept[kBlocks];
  allocate_here(33);
  REQUIRE(!is_guarded());
  free_here();
  begin("1");
  allocate_here(33);
  REQUIRE(is_guarded());
  char* const older = block;
  set_guard_sample("0");
  for (int i = 0; i < kBlocks; ++i) {
    allocate_here(33);
    REQUIRE(!is_guarded());
    free_here();
  }
  REQUIRE(malloc_usable_size(older) == 33);
  free(older);
  begin("2");
  int guarded = 0;
  for (int i = 0; i < kBlocks; ++i) {
    allocate_here(33);
    guarded += is_guarded();
    kept[i] = block;
  }
  REQUIRE(guarded > 15 && guarded < 85);
  for (int i = 0; i < kBlocks; ++i) free(kept[i]);
  begin("1");
  allocate_here(48);
  free_here();
  sink = block[3];
}

// While others allocate and free, it begins and ends.
static volatile int over;
static void* churn_on(void* seed) {
  while (!over) churn(seed);
  return NULL;
}
static void switched(void) {
  static const char* const values[] = {"1", "0", "7", "2", "0"};
  pthread_t thread[3];
  for (uintptr_t i = 0; i < 3; ++i) REQUIRE(pthread_create(&thread[i], NULL, churn_on, (void*)(i + 1)) == 0);
  for (int i = 0; i < 60; ++i) {
    set_guard_sample(values[i % 5]);
    usleep(300);
  }
  over = 1;
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_join(thread[i], NULL) == 0);
}

// Children of a process whose threads are in the middle of it.
static void forks(void) {
  pthread_t thread[3];
  for (uintptr_t i = 0; i < 3; ++i) REQUIRE(pthread_create(&thread[i], NULL, churn_on, (void*)(i + 1)) == 0);
  for (int i = 0; i < 8; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      for (int k = 0; k < 300; ++k) {
        allocate_here(33);
        free_here();
      }
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  over = 1;
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_join(thread[i], NULL) == 0);
}

// Four threads that free one block at once, and then touch blocks of their own that are free.
enum { kRacers = 4, kRaces = 25 };
static pthread_barrier_t line_up;
static void* race(void* unused) {
  (void)unused;
  for (int i = 0; i < kRaces; ++i) {
    if (pthread_barrier_wait(&line_up) == PTHREAD_BARRIER_SERIAL_THREAD) block = malloc(48);
    pthread_barrier_wait(&line_up);
    char* const same = block;
    pthread_barrier_wait(&line_up);
    free(same);
    char* const own = malloc(48);
    free(own);
    sink = own[3];
  }
  return NULL;
}
static void races(void) {
  pthread_t thread[kRacers];
  REQUIRE(pthread_barrier_init(&line_up, NULL, kRacers) == 0);
  for (int i = 0; i < kRacers; ++i) REQUIRE(pthread_create(&thread[i], NULL, race, NULL) == 0);
  for (int i = 0; i < kRacers; ++i) REQUIRE(pthread_join(thread[i], NULL) == 0);
}

// A handler of the program's that leaves by a jump, on a stack of its own; what it does allocates.
static sigjmp_buf back;
static volatile int faults;
static void jump(int number) {
  (void)number;
  ++faults;
  free(malloc(48));
  siglongjmp(back, 1);
}
static void* jump_out(void* unused) {
  (void)unused;
  static char room[16384];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  REQUIRE(sigaltstack(&stack, NULL) == 0);
  for (int i = 1; i <= 5; ++i) {
    allocate_here(48);
    free_here();
    if (sigsetjmp(back, 1) == 0) sink = block[3];
    REQUIRE(faults == i);
  }
  return NULL;
}
// It is there before the heap has a handler.
static void before_ours(int flags, void (*handler)(int)) {
  struct sigaction own = {0};
  own.sa_handler = handler;
  own.sa_flags = flags;
  REQUIRE(sigaction(SIGSEGV, &own, NULL) == 0);
  begin("1");
}
static void tell(int number) {
  (void)number;
  static const char text[] = "subject: once\n";
  if (write(2, text, sizeof text - 1) < 0) _exit(4);
}

typedef struct hz_heap_t hz_heap_t;
static void sizes_and_heaps(void) {
  void (*const free_sized)(void*, size_t) = (void (*)(void*, size_t))function("hz_free_sized");
  hz_heap_t* (*const heap_new)(void) = (hz_heap_t * (*)(void)) function("hz_heap_new");
  void* (*const heap_malloc)(hz_heap_t*, size_t) = (void* (*)(hz_heap_t*, size_t))function("hz_heap_malloc");
  void* (*const heap_realloc)(hz_heap_t*, void*, size_t) =
      (void* (*)(hz_heap_t*, void*, size_t))function("hz_heap_realloc");
  void (*const heap_destroy)(hz_heap_t*) = (void (*)(hz_heap_t*))function("hz_heap_destroy");
  allocate_here(33);
  REQUIRE(is_guarded());
  free_sized(block, 33);
  hz_heap_t* const heap = heap_new();
  REQUIRE(heap != NULL);
  char* const of_heap = heap_malloc(heap, 33);  // a heap's blocks end with it: none is guarded
  REQUIRE(of_heap != NULL && malloc_usable_size(of_heap) != 33);
  char* const grown = realloc(of_heap, 200);
  REQUIRE(grown != NULL && malloc_usable_size(grown) != 200);
  allocate_here(33);
  REQUIRE(is_guarded());
  REQUIRE(heap_realloc(heap, block, 64) == NULL);  // E01
  REQUIRE(is_guarded() && block[32] == 1);
  heap_destroy(heap);
  block = realloc(block, 20);  // in place
  REQUIRE(is_guarded());
  free_sized(block, 20);
  allocate_here(33);
  free_sized(block, 34);  // E05
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
  } else if (IS("late")) {
    late();
  } else if (IS("switched")) {
    switched();
  } else if (IS("forks")) {
    forks();
  } else if (IS("races")) {
    races();
  } else if (IS("jumps")) {
    before_ours(SA_ONSTACK, jump);
    run(jump_out, NULL);
  } else if (IS("once")) {
    before_ours(SA_RESETHAND, tell);
    allocate_here(48);
    free_here();
    sink = block[3];
  } else if (IS("sizes-and-heaps")) {
    sizes_and_heaps();
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
