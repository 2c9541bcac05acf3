// SPDX-License-Identifier: Apache-2.0
//
// A library that uses malloc while the loader is at work: in the resolver of an IFUNC and in its constructor.
// Built twice: to be loaded before our library, with EARLY_VISIBILITY "hidden", so that the resolver runs
// when the library has just been relocated; and as something that the program needs, with "default", so that
// it runs at the first call. (The loader relocates what the program needs before it relocates what is
// preloaded: no resolver that runs at that moment can call a preloaded malloc, whosever it is.)
#include "early_calls.h"

#define JOIN(a, b) a##b
#define NAMED(prefix, what) JOIN(prefix, what)
#define EARLY_NAME(what) NAMED(EARLY_PREFIX, what)

static struct Moment in_constructor;

#ifdef __GLIBC__
static struct Moment in_resolver;

static int answer(void) { return 42; }

__attribute__((used)) static int (*resolve(void))(void) {
  if (!in_resolver.reached) early_calls(&in_resolver);
  return answer;
}

__attribute__((visibility(EARLY_VISIBILITY))) int EARLY_NAME(_ifunc)(void) __attribute__((ifunc("resolve")));
#endif

__attribute__((constructor)) static void construct(void) { early_calls(&in_constructor); }

// 0, or which moment went wrong.
int EARLY_NAME(_check)(int (*owns)(const void*)) {
#ifdef __GLIBC__
  if (EARLY_NAME(_ifunc)() != 42) return 1;
  if (!early_is_sound(&in_resolver, owns)) return 2;
#endif
  return early_is_sound(&in_constructor, owns) ? 0 : 3;
}
