// SPDX-License-Identifier: Apache-2.0
//
// A program that uses malloc before main: in the resolver of an IFUNC, in .preinit_array and in a
// constructor; so do libraries of its. Prints what went wrong; exit code 0 if nothing did. `early.c before`
// wants the library that is loaded before ours, too. musl has neither IFUNCs nor .preinit_array: there, what
// is left is constructors.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "early_calls.h"

static struct Moment in_constructor;

#ifdef __GLIBC__
static struct Moment in_resolver, in_preinit;

static int answer(void) { return 42; }

__attribute__((used)) static int (*resolve(void))(void) {
  if (!in_resolver.reached) early_calls(&in_resolver);
  return answer;
}

static int indirect(void) __attribute__((ifunc("resolve")));

static void preinit(void) { early_calls(&in_preinit); }
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(void) = preinit;
#endif

__attribute__((constructor)) static void construct(void) { early_calls(&in_constructor); }

static int failed;
static void expect(int holds, const char* what) {
  if (holds) return;
  printf("FAILED: %s\n", what);
  failed = 1;
}

typedef int Owns(const void*);

static void expect_library(const char* function, Owns* owns) {
  int (*check)(Owns*) = (int (*)(Owns*))dlsym(RTLD_DEFAULT, function);
  const int result = check == NULL ? -1 : check(owns);
  if (result != 0) printf("%s: %d\n", function, result);
  expect(result == 0, function);
}

int main(int argc, char** argv) {
  Owns* owns = (Owns*)dlsym(RTLD_DEFAULT, "hz_owns");
  const char* (*line)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "hz_line");
  const char* wanted = getenv("HZ_TEST_LINE");
  expect(owns != NULL && line != NULL && wanted != NULL && strcmp(line(), wanted) == 0, "the line serves");
  if (failed) return 1;
#ifdef __GLIBC__
  expect(indirect() == 42, "the IFUNC is resolved");
  expect(early_is_sound(&in_resolver, owns), "resolver of the program");
  expect(early_is_sound(&in_preinit, owns), ".preinit_array");
#endif
  expect(early_is_sound(&in_constructor, owns), "constructor of the program");
  expect_library("needed_check", owns);
  for (int i = 1; i < argc; ++i) expect_library(argv[i], owns);
  return failed;
}
