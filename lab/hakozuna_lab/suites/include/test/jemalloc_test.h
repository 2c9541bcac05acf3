/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of jemalloc's test support, for those of its tests that call the standard functions alone: which name what is
 * to hold, and which are run. Included by the programs of `hz suites jemalloc`; a test that names anything else of jemalloc
 * does not compile. */
#pragma once
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define LG_SIZEOF_PTR 3
#define BUFERROR_BUF 64
#define JEMALLOC_DIAGNOSTIC_PUSH
#define JEMALLOC_DIAGNOSTIC_POP
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN
#define TEST_MALLOC_SIZE(block) malloc_usable_size(block)

static bool hz_test_failed, hz_test_skipped;

__attribute__((format(printf, 1, 2))) static void test_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  hz_test_failed = true;
}

#define test_skip(...) (hz_test_skipped = true)
#define test_skip_if(condition) \
  do { \
    if (condition) { \
      hz_test_skipped = true; \
      return; \
    } \
  } while (0)

#define HZ_EXPECT(condition, ...) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      test_fail("" __VA_ARGS__); \
    } \
  } while (0)
#define HZ_ASSERT(condition, ...) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      test_fail("" __VA_ARGS__); \
      abort(); \
    } \
  } while (0)

#define expect_true(a, ...) HZ_EXPECT(a, __VA_ARGS__)
#define expect_false(a, ...) HZ_EXPECT(!(a), __VA_ARGS__)
#define expect_ptr_null(a, ...) HZ_EXPECT((a) == NULL, __VA_ARGS__)
#define expect_ptr_not_null(a, ...) HZ_EXPECT((a) != NULL, __VA_ARGS__)
#define expect_ptr_eq(a, b, ...) HZ_EXPECT((void *)(a) == (void *)(b), __VA_ARGS__)
#define expect_ptr_ne(a, b, ...) HZ_EXPECT((void *)(a) != (void *)(b), __VA_ARGS__)
#define expect_d_eq(a, b, ...) HZ_EXPECT((a) == (b), __VA_ARGS__)
#define expect_d_ne(a, b, ...) HZ_EXPECT((a) != (b), __VA_ARGS__)
#define expect_u_eq(a, b, ...) HZ_EXPECT((a) == (b), __VA_ARGS__)
#define expect_c_eq(a, b, ...) HZ_EXPECT((a) == (b), __VA_ARGS__)
#define expect_zu_eq(a, b, ...) HZ_EXPECT((a) == (b), __VA_ARGS__)
#define expect_zu_ne(a, b, ...) HZ_EXPECT((a) != (b), __VA_ARGS__)
#define expect_zu_le(a, b, ...) HZ_EXPECT((a) <= (b), __VA_ARGS__)
#define expect_zu_lt(a, b, ...) HZ_EXPECT((a) < (b), __VA_ARGS__)
#define expect_zu_ge(a, b, ...) HZ_EXPECT((a) >= (b), __VA_ARGS__)
#define expect_zu_gt(a, b, ...) HZ_EXPECT((a) > (b), __VA_ARGS__)
#define expect_x_eq(a, b, ...) HZ_EXPECT((a) == (b), __VA_ARGS__)
#define expect_u64_eq(a, b, ...) HZ_EXPECT((a) == (b), __VA_ARGS__)
#define expect_str_eq(a, b, ...) HZ_EXPECT(strcmp(a, b) == 0, __VA_ARGS__)
#define assert_true(a, ...) HZ_ASSERT(a, __VA_ARGS__)
#define assert_false(a, ...) HZ_ASSERT(!(a), __VA_ARGS__)
#define assert_ptr_not_null(a, ...) HZ_ASSERT((a) != NULL, __VA_ARGS__)
#define assert_d_eq(a, b, ...) HZ_ASSERT((a) == (b), __VA_ARGS__)
#define assert_zu_eq(a, b, ...) HZ_ASSERT((a) == (b), __VA_ARGS__)
#define assert(a) HZ_ASSERT(a, "assert")

static inline void set_errno(int number) { errno = number; }
static inline int get_errno(void) { return errno; }
static inline int buferror(int number, char *text, size_t size) { return snprintf(text, size, "errno %d", number); }

/* What asks jemalloc to give memory back between two rounds, which no result depends on: it is done as asked. */
static inline int mallctl(const char *name, void *old, size_t *old_size, void *new_value, size_t new_size) {
  (void)old, (void)old_size, (void)new_value, (void)new_size;
  const size_t length = strlen(name);
  return length > 6 && strcmp(name + length - 6, ".purge") == 0 ? 0 : ENOENT;
}

typedef pthread_t thd_t;
static inline void thd_create(thd_t *thread, void *(*work)(void *), void *argument) {
  HZ_ASSERT(pthread_create(thread, NULL, work, argument) == 0, "pthread_create");
}
static inline void thd_join(thd_t thread, void **result) {
  HZ_ASSERT(pthread_join(thread, result) == 0, "pthread_join");
}

typedef void(test_t)(void);
#define TEST_BEGIN(name) static void name(void)
#define TEST_END

static inline int hz_test_run(test_t *const *tests) {
  for (; *tests; ++tests) (*tests)();
  return hz_test_failed ? 1 : hz_test_skipped ? 77 : 0;
}
#define test(...) hz_test_run((test_t *const[]){__VA_ARGS__, NULL})
#define test_no_reentrancy(...) test(__VA_ARGS__)
