// SPDX-License-Identifier: Apache-2.0
// A program replaces new(size_t) and delete(void*) alone, with a header before each block: the default
// versions of the other forms have to call these, as the standard says. It also replaces the aligned pair, in
// the same way.
// prints: ok
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

struct Header {
  std::size_t offset, mark;
};
constexpr std::size_t kMark = 0x1234567;
long live = 0, news = 0;
bool refuses = false;

void* give(std::size_t size, std::size_t offset) {
  if (refuses) throw std::bad_alloc();
  char* const at = static_cast<char*>(std::aligned_alloc(offset, (size + 2 * offset - 1) / offset * offset));
  auto* const header = reinterpret_cast<Header*>(at + offset) - 1;
  *header = {offset, kMark};
  ++live, ++news;
  return at + offset;
}
void take(void* block) {
  if (block == nullptr) return;
  auto* const header = static_cast<Header*>(block) - 1;
  if (header->mark != kMark) std::puts("a block without our header"), std::_Exit(1);
  --live;
  std::free(static_cast<char*>(block) - header->offset);
}

struct Plain {
  int values[10];
  ~Plain() { values[0] = 0; }  // so that arrays know their length, and are deleted by it
};
struct alignas(128) Aligned {
  int values[40];
  ~Aligned() { values[0] = 0; }
};

template <class T>
void use(const char* name) {
  const long before = news;
  T* volatile one = new T;
  delete one;
  one = new (std::nothrow) T;
  delete one;
  T* volatile several = new T[5];
  delete[] several;
  several = new (std::nothrow) T[5];
  delete[] several;
  if (news - before != 4 || live != 0)
    std::printf("%s: %ld of 4, %ld live\n", name, news - before, live), std::_Exit(1);
  refuses = true;
  if (new (std::nothrow) T != nullptr || new (std::nothrow) T[5] != nullptr)
    std::puts("no nullptr"), std::_Exit(1);
  refuses = false;
}

}  // namespace

void* operator new(std::size_t n) { return give(n, 16); }
void operator delete(void* p) noexcept { take(p); }
void* operator new(std::size_t n, std::align_val_t a) { return give(n, static_cast<std::size_t>(a)); }
void operator delete(void* p, std::align_val_t) noexcept { take(p); }

int main() {
  for (int round = 0; round < 3; ++round) {
    use<Plain>("plain");
    use<Aligned>("aligned");
  }
  operator delete (operator new(20), std::size_t{20});
  operator delete(operator new(20), std::nothrow);
  operator delete[](operator new[](20), std::nothrow);
  operator delete[](operator new[](20), std::size_t{20});
  operator delete[](operator new[](20, std::align_val_t{64}), 20, std::align_val_t{64});
  operator delete[](operator new[](20, std::align_val_t{64}), std::align_val_t{64}, std::nothrow);
  {
    std::vector<std::string> texts;
    for (int i = 0; i < 1000; ++i)
      texts.push_back(std::to_string(i * 7919 % 1000) + "................................");
    std::stable_sort(texts.begin(), texts.end());
    const auto shared = std::make_shared<Plain>();
  }
  if (live != 0) return std::printf("%ld live\n", live), 1;
  std::puts("ok");
  return 0;
}
