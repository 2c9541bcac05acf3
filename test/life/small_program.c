// SPDX-License-Identifier: Apache-2.0
//
// What a small program in C does with its C library, and what that then asks of the heap: text, patterns,
// names, other programs, threads with little stack, forks beside threads, a plugin. Run on musl, where
// programs are often small, and as often static as not. Argument: a plugin, or "static" for a program that
// can load none. Prints what went wrong; exit code 0 if nothing did.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <iconv.h>
#include <limits.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <regex.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hakozuna/hakozuna.h"

extern char** environ;

// Who is served by preload was linked without us.
#pragma weak hz_owns
#pragma weak hz_line

static int failed;
#define EXPECT(holds)                                    \
  do {                                                   \
    if (!(holds)) {                                      \
      printf("FAILED: line %d: %s\n", __LINE__, #holds); \
      failed = 1;                                        \
    }                                                    \
  } while (0)

// A block that the C library has allocated for us: from our heap, and our free takes it.
static void expect_ours(void* block) {
  EXPECT(block != NULL && hz_owns(block) == 1);
  free(block);
}

static int by_number(const void* a, const void* b) {
  const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
  return (x > y) - (x < y);
}

static void text(void) {
  enum { kNumbers = 20000 };
  unsigned* numbers = malloc(kNumbers * sizeof *numbers);
  for (unsigned i = 0; i < kNumbers; ++i) numbers[i] = i * 2654435761u;
  qsort(numbers, kNumbers, sizeof *numbers, by_number);
  for (unsigned i = 1; i < kNumbers; ++i) EXPECT(numbers[i - 1] <= numbers[i]);
  free(numbers);

  char* made = NULL;
  EXPECT(asprintf(&made, "%d %.3f %s", 42, 2.5, "boxes") == 14);
  expect_ours(made);
  expect_ours(strdup("a box"));
  expect_ours(realpath("/proc/self/exe", NULL));
  expect_ours(getcwd(NULL, 0));

  char* grown = NULL;
  size_t bytes = 0;
  FILE* stream = open_memstream(&grown, &bytes);
  for (int i = 0; i < 10000; ++i) fprintf(stream, "line %d\n", i);
  fclose(stream);
  EXPECT(bytes == 98890);
  stream = fmemopen(grown, bytes, "r");
  char* line = NULL;
  size_t room = 0;
  int lines = 0;
  while (getline(&line, &room, stream) > 0) ++lines;
  EXPECT(lines == 10000);
  fclose(stream);
  expect_ours(line);
  expect_ours(grown);

  regex_t pattern;
  regmatch_t match[3];
  EXPECT(regcomp(&pattern, "([a-z]+)@([a-z.]+)", REG_EXTENDED) == 0);
  EXPECT(regexec(&pattern, "to: someone@example.org", 3, match, 0) == 0 && match[2].rm_so == 12);
  regfree(&pattern);

  EXPECT(setlocale(LC_ALL, "C.UTF-8") != NULL);
  iconv_t wide = iconv_open("UTF-16LE", "UTF-8");
  EXPECT(wide != (iconv_t)-1);
  iconv_close(wide);
}

static void names(void) {
  struct addrinfo* list = NULL;
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
  EXPECT(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0 && list != NULL);
  freeaddrinfo(list);
  glob_t found;
  EXPECT(glob("/proc/self/*", 0, NULL, &found) == 0 && found.gl_pathc > 10);
  globfree(&found);
  for (int i = 0; i < 200; ++i) {
    char name[32];
    snprintf(name, sizeof name, "HZ_NOTHING_%d", i);
    EXPECT(setenv(name, name, 1) == 0 && strcmp(getenv(name), name) == 0);
    unsetenv(name);
  }
}

static void other_programs(void) {
  FILE* pipe = popen("echo boxes", "r");
  char word[16] = "";
  EXPECT(pipe != NULL && fgets(word, sizeof word, pipe) != NULL && strcmp(word, "boxes\n") == 0);
  EXPECT(pipe != NULL && pclose(pipe) == 0);
  EXPECT(system("exit 3") == 3 << 8);
  char* const arguments[] = {"sh", "-c", "exit 4", NULL};
  pid_t child;
  int status = 0;
  EXPECT(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0 &&
         waitpid(child, &status, 0) == child);
  EXPECT(status == 4 << 8);
}

static void use(unsigned seed) {
  void* blocks[40];
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 40; ++i) {
      const size_t size = (size_t)1 << (seed + round + i) % 20;
      blocks[i] = round % 3 == 0 ? calloc(1, size) : malloc(size);
      if (blocks[i] == NULL) _exit(9);
      memset(blocks[i], 1, size < 4096 ? size : 4096);
    }
    for (unsigned i = 0; i < 40; ++i) free(blocks[i]);
  }
}

static void* use_in_thread(void* seed) {
  use((unsigned)(uintptr_t)seed);
  return NULL;
}

// From the least, which the C library rounds up to a page and takes its part of, to musl's default.
static void threads(void) {
  for (size_t stack = PTHREAD_STACK_MIN; stack <= 131072; stack *= 2) {
    pthread_attr_t attributes;
    pthread_t running[4];
    pthread_attr_init(&attributes);
    EXPECT(pthread_attr_setstacksize(&attributes, stack) == 0);
    for (uintptr_t i = 0; i < 4; ++i)
      EXPECT(pthread_create(&running[i], &attributes, use_in_thread, (void*)(i * 5)) == 0);
    for (int i = 0; i < 4; ++i) pthread_join(running[i], NULL);
    pthread_attr_destroy(&attributes);
  }
}

static volatile int stop;

static void* churn(void* seed) {
  while (!stop) use((unsigned)(uintptr_t)seed);
  return NULL;
}

// Children that use the heap, and stdio with it, beside threads that are anywhere in it.
static void forks(void) {
  pthread_t running[3];
  for (uintptr_t i = 0; i < 3; ++i) EXPECT(pthread_create(&running[i], NULL, churn, (void*)i) == 0);
  for (unsigned i = 0; i < 60; ++i) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      use(i);
      FILE* nowhere = fopen("/dev/null", "w");
      fprintf(nowhere, "%u\n", i);
      fclose(nowhere);
      if (i % 20 == 0) {
        pthread_t other;
        if (pthread_create(&other, NULL, use_in_thread, NULL) != 0 || pthread_join(other, NULL) != 0)
          _exit(8);
      }
      exit(0);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(running[i], NULL);
}

// A plugin comes, allocates, and goes; what it allocated stays.
static void plugin(const char* path) {
  for (int i = 0; i < 20; ++i) {
    void* library = dlopen(path, RTLD_NOW);
    EXPECT(library != NULL);
    if (library == NULL) return;
    void* (*make)(size_t) = (void* (*)(size_t))dlsym(library, "hz_plugin_make");
    void* block = make == NULL ? NULL : make(1000);
    EXPECT(dlclose(library) == 0);
    expect_ours(block);
  }
}

int main(int argc, char** argv) {
  const char* wanted = getenv("HZ_TEST_LINE");
  EXPECT(wanted != NULL && hz_line != NULL && strcmp(hz_line(), wanted) == 0);
  if (failed) return 1;
  unsetenv("LD_PRELOAD");  // the programs that we start may have another C library
  text();
  names();
  other_programs();
  threads();
  forks();
  if (argc > 1 && strcmp(argv[1], "static") != 0) plugin(argv[1]);
  return failed;
}
