// SPDX-License-Identifier: Apache-2.0
//
// Writes a heap profile with two stacks of its own functions, as the library would, so that names can be
// looked for in a program that is known: one function is inlined, and one has a template's name. Built with
// frame pointers and debugging information; prof_test.py strips copies of it. Takes one argument: the file.
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

std::FILE* file;
const char* figures;

// Return addresses, from who called `note` on to main's.
[[gnu::noinline]] void note(int depth) {
  std::fprintf(file, "site %s |", figures);
  auto** frame = static_cast<void**>(__builtin_frame_address(0));
  for (int i = 0; i < depth; ++i, frame = static_cast<void**>(frame[0]))
    std::fprintf(file, " %jx", static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(frame[1])));
  std::fputc('\n', file);
}

}  // namespace

namespace shop {

[[gnu::always_inline]] inline void allocate(int depth) {
  note(depth);
  asm volatile("");  // no tail call
}

template <class Item>
struct Cart {
  [[gnu::noinline]] static void grow(const Item& depth) {
    allocate(depth);
    asm volatile("");
  }
};

[[gnu::noinline]] void serve(int depth) {
  Cart<int>::grow(depth);
  asm volatile("");
}

}  // namespace shop

int main(int argc, char** argv) {
  if (argc != 2 || (file = std::fopen(argv[1], "w")) == nullptr) return 2;
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 2;
  std::fprintf(file,
               "hakozuna heap profile 1\nprocess %d %s\nlibrary hakozuna 9.9.9\ntime 4000000000 5000000\n"
               "interval 65536\ndropped 0\n",
               static_cast<int>(getpid()), self);
  figures = "40 2621440 100 6553600 50 3276800 100 60 0,0,0,0,0,0,0,0,0,0,10,50,0,0,0,0,0,0,0,0,0,0,0,0";
  shop::serve(3);
  figures = "0 0 1000 65536 10 655 3 3 1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
  shop::Cart<int>::grow(2);
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[8192];
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr)
    if (const char* permissions = std::strchr(line, ' '); permissions != nullptr && permissions[3] == 'x')
      std::fprintf(file, "map %s", line);
  std::fputs("end\n", file);
  return std::fclose(file);
}
