// SPDX-License-Identifier: Apache-2.0
//
// consumer LINE drop-in|beside: a program of somebody else's that links an installed line. Says whether the
// line is the expected one, whether malloc and new come from it (or not, beside it), and uses both headers.
#include <hakozuna/hakozuna.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <hakozuna/hakozuna.hpp>
#include <string>
#include <vector>

static int failures = 0;

static void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "consumer: expected: %s\n", what);
  ++failures;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool drop_in = std::strcmp(argv[2], "drop-in") == 0;
  expect(std::strcmp(hz_line(), argv[1]) == 0, "the line that was asked for");
  expect(std::strcmp(hz_version(), HZ_VERSION) == 0, "library and header of one version");

  void* from_malloc = std::malloc(100);
  void* from_new = ::operator new(100);
  char* from_libc = strdup("the C library's own calls");
  expect((hz_owns(from_malloc) != 0) == drop_in, "malloc is ours exactly when dropped in");
  expect((hz_owns(from_new) != 0) == drop_in, "new is ours exactly when dropped in");
  expect((hz_owns(from_libc) != 0) == drop_in, "strdup's block is ours exactly when dropped in");
  std::free(from_libc);
  ::operator delete(from_new);
  std::free(from_malloc);

  void* direct = hz_malloc(100);
  expect(hz_owns(direct) != 0, "hz_malloc is ours");
  hz_free(direct);

  std::pmr::vector<std::pmr::string> words(hakozuna::resource());
  words.emplace_back("long enough to live on the heap, not inside of the string");
  expect(hz_owns(words.front().data()) != 0, "a pmr string allocates from us");
  std::vector<int, hakozuna::allocator<int>> numbers(1000, 7);
  expect(hz_owns(numbers.data()) != 0, "a vector with our allocator allocates from us");
  return failures == 0 ? 0 : 1;
}
