// SPDX-License-Identifier: Apache-2.0
//
// bad_pointer MODE [late]: gives a bad pointer to the heap, from functions with names; `late` after a line of
// input. For the tests of reports and of `hz explain`.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void stay() { asm volatile(""); }  // so that no call is the last one of its function

}  // namespace

class Session {
 public:
  __attribute__((noinline)) void open() {
    text_ = static_cast<char*>(std::malloc(100));
    stay();
  }
  __attribute__((noinline)) void close() {
    std::free(text_);
    stay();
  }
  __attribute__((noinline)) void close_inside() {
    std::free(text_ + 16);
    stay();
  }
  __attribute__((noinline)) void close_static() {
    static char here[64];
    std::free(here + 16);
    stay();
  }

 private:
  char* text_ = nullptr;
};

// Not exported: only the file's own table of symbols has it.
static __attribute__((noinline)) void twice(Session& session) {
  session.close();
  session.close();
  stay();
}

int main(int count, char** words) {
  Session session;
  session.open();
  if (count > 2) {
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
  }
  const char* const mode = words[1];
  if (std::strcmp(mode, "twice") == 0) twice(session);
  if (std::strcmp(mode, "often") == 0)
    for (int i = 0; i < 40; ++i) session.close_static();
  if (std::strcmp(mode, "inside") == 0) session.close_inside();
  if (std::strcmp(mode, "static") == 0) session.close_static();
  return 0;
}
