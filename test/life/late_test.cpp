// SPDX-License-Identifier: Apache-2.0
//
// Our library comes late: by dlopen, into a program that has threads and blocks of the C library's. hz_*
// works in all threads, old and new; malloc stays the C library's; and the library cannot be unloaded under
// its blocks. Not run under preload: HZ_TEST_LIBRARY names the library.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "stress/scale.hpp"
#include "stress/threads.hpp"
#include "support/line.hpp"
#include "support/pattern.hpp"

namespace hz_test {
namespace {

const char* Library() {
  const char* path = std::getenv("HZ_TEST_LIBRARY");
  return path == nullptr ? "HZ_TEST_LIBRARY-is-not-set" : path;
}

struct Late {
  void* library = nullptr;
  void* (*malloc)(std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  int (*owns)(const void*) = nullptr;
  int (*trim)(std::size_t) = nullptr;
  const char* (*line)() = nullptr;

  bool Load() {
    library = dlopen(Library(), RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && Find("hz_malloc", malloc) && Find("hz_realloc", realloc) &&
           Find("hz_free", free) && Find("hz_owns", owns) && Find("hz_trim", trim) && Find("hz_line", line) &&
           ExpectedLine() == line();
  }
  template <class Function>
  bool Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
};

bool Churn(const Late& late, std::uint64_t seed, unsigned count) {
  struct {
    void* at = nullptr;
    std::size_t size = 0;
  } live[64];
  Random random(seed);
  bool sound = true;
  for (unsigned i = 0; i < count + 64; ++i) {
    auto& slot = live[i < count ? Below(random, 64) : i - count];
    sound =
        sound && (slot.at == nullptr || (late.owns(slot.at) == 1 && HasPattern(slot.at, slot.size, seed)));
    if (i < count && Below(random, 3) != 0) {
      slot.size = LogSize(random, Below(random, 100) == 0 ? 22 : 13);
      slot.at = late.realloc(slot.at, slot.size);
      sound = sound && slot.at != nullptr;
      FillPattern(slot.at, slot.size, seed);
    } else {
      late.free(slot.at);
      slot.at = nullptr;
    }
  }
  return sound;
}

// Child processes load it, so that each test starts without.
template <class Body>
void InChild(Body body) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
    body();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(pid, waitpid(pid, &status, 0));
  EXPECT_EQ(0, status);
}

constexpr unsigned kOld = 6;

void LoadedAmongThreads() {
  Late late;
  std::vector<void*> theirs;
  for (std::size_t size = 1; size < 3000000; size = size * 3 / 2 + 1) theirs.push_back(std::malloc(size));
  void* const their_malloc = dlsym(RTLD_DEFAULT, "malloc");
  std::atomic<bool> loaded{false};
  std::atomic<unsigned> sound{0}, started{0};
  {
    std::vector<std::unique_ptr<Thread>> old;
    for (unsigned i = 0; i < kOld; ++i) {
      old.push_back(std::make_unique<Thread>([&, i] {
        ++started;
        while (!loaded) std::free(std::malloc(Below(*std::make_unique<Random>(i), 5000)));
        if (Churn(late, i, 20000)) ++sound;
      }));
    }
    while (started != kOld) sched_yield();
    ASSERT_TRUE(late.Load()) << dlerror();
    loaded = true;
    EXPECT_TRUE(Churn(late, 99, 20000));
  }
  EXPECT_EQ(kOld, sound);
  Together(kOld, [&](unsigned i) { EXPECT_TRUE(Churn(late, 100 + i, 20000)); });
  EXPECT_EQ(their_malloc, dlsym(RTLD_DEFAULT, "malloc"));
  for (void* block : theirs) {
    EXPECT_EQ(0, late.owns(block));
    std::free(block);
  }
  InChild([&] { EXPECT_TRUE(Churn(late, 7, 1000)); });
}

TEST(Late, LoadedAmongThreads) {
  InChild([] { LoadedAmongThreads(); });
}

TEST(Late, CannotBeUnloaded) {
  InChild([] {
    Late late;
    ASSERT_TRUE(late.Load()) << dlerror();
    void* block = late.malloc(1000);
    FillPattern(block, 1000, 1);
    Barrier turn(2);
    Thread thread([&] {
      EXPECT_TRUE(Churn(late, 1, 100));
      turn.Wait();
      turn.Wait();  // its end is still to come when the library is closed
    });
    turn.Wait();
    EXPECT_EQ(0, dlclose(late.library));
    EXPECT_NE(nullptr, dlopen(Library(), RTLD_NOW | RTLD_NOLOAD)) << "it is gone";
    turn.Wait();
    thread.Join();
    EXPECT_TRUE(HasPattern(block, 1000, 1));
    late.free(block);
    EXPECT_TRUE(Churn(late, 2, 1000));
  });
}

// Loads so many copies of a library with 64 bytes of static TLS; how many could be had. The loader knows a
// library by its name and its inode, so all copies exist at the same time.
unsigned Eat(unsigned wanted) {
  std::vector<std::string> copies;
  unsigned loaded = 0;
  for (; loaded < wanted; ++loaded) {
    copies.push_back(::testing::TempDir() + "hz-eater-" + std::to_string(getpid()) + "-" +
                     std::to_string(loaded));
    std::ofstream(copies.back(), std::ios::binary) << std::ifstream(HZ_TEST_EATER, std::ios::binary).rdbuf();
    if (dlopen(copies.back().c_str(), RTLD_NOW) == nullptr) break;
  }
  for (const std::string& copy : copies) unlink(copy.c_str());
  return loaded;
}

TEST(Late, TakesLittleOfTheStaticTls) {
  unsigned all = 0;
  int told[2];
  ASSERT_EQ(0, pipe(told));
  InChild([&] {
    const unsigned loaded = Eat(1000);
    EXPECT_EQ(ssize_t{sizeof loaded}, write(told[1], &loaded, sizeof loaded));
  });
  ASSERT_EQ(ssize_t{sizeof all}, read(told[0], &all, sizeof all));
  ASSERT_GT(all, 2U);
  ASSERT_LT(all, 1000U);
  InChild([&] {
    ASSERT_EQ(all - 2, Eat(all - 2));  // what is left is enough for 128 bytes, not for more than 192
    Late late;
    ASSERT_TRUE(late.Load()) << dlerror();
    EXPECT_TRUE(Churn(late, 1, 1000));
    Together(4, [&](unsigned i) { EXPECT_TRUE(Churn(late, i, 1000)); });
  });
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
