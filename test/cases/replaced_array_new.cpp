// SPDX-License-Identifier: Apache-2.0
// A program replaces new[](size_t) and delete[](void*) alone: the nothrow and the sized forms for arrays call
// these, all others stay ours.
// prints: ok
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {
long live = 0, news = 0;
struct Counted {
  int values[10];
  ~Counted() { values[0] = 0; }
};
constexpr std::size_t kBefore = 16;
}  // namespace

void* operator new[](std::size_t n) {
  ++live, ++news;
  return static_cast<char*>(std::malloc(n + kBefore)) + kBefore;
}
void operator delete[](void* p) noexcept {
  if (p == nullptr) return;
  --live;
  std::free(static_cast<char*>(p) - kBefore);
}

int main() {
  Counted* volatile several = new Counted[5];
  delete[] several;
  several = new (std::nothrow) Counted[5];
  delete[] several;
  operator delete[](operator new[](20, std::nothrow), std::nothrow);
  operator delete[](operator new[](20), std::size_t{20});
  Counted* volatile one = new Counted;
  delete one;
  one = new (std::nothrow) Counted;
  delete one;
  if (news != 4 || live != 0) return std::printf("%ld of 4, %ld live\n", news, live), 1;
  std::puts("ok");
  return 0;
}
