// SPDX-License-Identifier: Apache-2.0
//
// Programs that are served by the redirecting DLL: this one, which imports it; a DLL of this one's; copies of
// it that end or go wrong; and one that nobody here wrote, into which run_with brings it.
#include <gtest/gtest.h>
#include <windows.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "support/capture.hpp"
#include "support/child.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"

namespace {

using hz_test::ChildResult;
using hz_test::Opaque;
using hz_test::RunChild;
using hz_test::Setting;

// It lies beside this program.
std::string Dll() {
  char self[MAX_PATH + 1];
  GetModuleFileNameA(nullptr, self, MAX_PATH);
  const std::string path = self;
  return path.substr(0, path.rfind('\\') + 1) + "hakozuna-" + hz_test::ExpectedLine() + "-redirect.dll";
}

hz_stats_t Stats() {
  hz_stats_t now;
  hz_stats(&now, sizeof now);
  return now;
}

// One of the tests below that is disabled, in a process of its own.
ChildResult Alone(const std::string& name, std::vector<Setting> settings = {}) {
  return RunChild(
      {"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=DISABLED_Child." + name},
      std::move(settings));
}

TEST(Program, IsServedByTheLine) {
  EXPECT_EQ(hz_test::ExpectedLine(), hz_line());
  const auto number = std::make_unique<int>(7);
  EXPECT_EQ(1, hz_owns(number.get()));
  const std::vector<double> many(1000);
  EXPECT_EQ(1, hz_owns(many.data()));
  char* text = strdup("text");
  EXPECT_EQ(1, hz_owns(text));
  std::free(text);
  struct alignas(256) Wide {
    char bytes[256];
  };
  auto* wide = new Wide;
  EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(wide) % 256);
  delete wide;
  EXPECT_EQ(nullptr, new (std::nothrow) char[Opaque(std::size_t{1} << 62)]);
}

TEST(Program, SharesBlocksWithItsDlls) {
  const HMODULE plugin = LoadLibraryA("windows_plugin.dll");
  ASSERT_NE(nullptr, plugin);
  auto* const allocate = reinterpret_cast<void* (*)(std::size_t)>(
      reinterpret_cast<void*>(GetProcAddress(plugin, "plugin_malloc")));
  auto* const release =
      reinterpret_cast<void (*)(void*)>(reinterpret_cast<void*>(GetProcAddress(plugin, "plugin_free")));
  void* theirs = allocate(1000);
  EXPECT_EQ(1, hz_owns(theirs));
  std::free(theirs);
  EXPECT_TRUE(hz_test::SeesSecondFreesLate() || hz_check(theirs) != 0);
  void* ours = std::malloc(1000);
  release(ours);
  EXPECT_TRUE(hz_test::SeesSecondFreesLate() || hz_check(ours) != 0);
  FreeLibrary(plugin);
}

// Of a thread's, and destroyed when the loader has perhaps told us of its end already.
struct Late {
  ~Late() {
    std::free(block);
    std::free(Opaque(std::malloc(50'000)));
    ++destroyed;
  }
  void* block = Opaque(std::malloc(3000));
  static inline std::atomic<int> destroyed{0};
};

TEST(Program, ThreadsThatEndLeaveNothing) {
  constexpr int kThreads = 40;
  const auto round = [] {
    for (int i = 0; i < kThreads; ++i) {
      std::thread([] {
        thread_local Late late;
        std::vector<std::unique_ptr<char[]>> blocks;
        for (std::size_t size = 1; size < 100'000; size += size / 4 + 1)
          blocks.push_back(std::make_unique<char[]>(size));
        EXPECT_EQ(1, hz_owns(late.block));
      }).join();
    }
  };
  Late::destroyed = 0;  // tests may be repeated
  round();
  const hz_stats_t before = Stats();
  round();
  const hz_stats_t after = Stats();
  EXPECT_EQ(2 * kThreads, Late::destroyed);
  EXPECT_EQ(before.threads, after.threads) << "the end of a thread went unnoticed";
  EXPECT_LT(after.bytes_live, before.bytes_live + 50'000) << "of " << kThreads << " threads";
  EXPECT_LT(after.bytes_cached, before.bytes_cached + 1'000'000) << "of " << kThreads << " threads";
}

TEST(Program, MayForbidIt) {
  const ChildResult child = Alone("TellsWhetherItIsServed", {{"HZ_REDIRECT", "0"}});
  EXPECT_EQ(0, child.exit_code);
  EXPECT_NE(std::string::npos, child.out.find("owned: 0 0")) << child.out << child.err;
  const ChildResult served = Alone("TellsWhetherItIsServed");
  EXPECT_NE(std::string::npos, served.out.find("owned: 1 1")) << served.out << served.err;
}

TEST(Program, IsToldOfBadPointers) {
  for (const auto& [name, code] : {std::pair{"FreesItsStack", "E01 foreign-pointer"},
                                   {"FreesTwice", "E03 double-free"},
                                   {"FreesTheInside", "E04 interior-pointer"}}) {
    const ChildResult child = Alone(name);
    EXPECT_EQ(SIGABRT, child.signal) << name << child.out;
    EXPECT_NE(std::string::npos, child.err.find(std::string("hz: fatal: ") + code)) << name << child.err;
    EXPECT_EQ(std::string::npos, child.out.find("went on")) << name;
    const ChildResult goes_on = Alone(name, {{"HZ_ON_INVALID", "report"}});
    EXPECT_EQ(0, goes_on.exit_code) << name;
    EXPECT_NE(std::string::npos, goes_on.err.find(code)) << name << goes_on.err;
    EXPECT_NE(std::string::npos, goes_on.out.find("went on")) << name;
  }
}

// Windows ends the other threads wherever they are, also with a lock of ours; then DLLs are told.
TEST(Program, EndsWithItsCodeWhileOthersAllocate) {
  for (int i = 0; i < 5; ++i) {
    const ChildResult child = Alone("ExitsAmidThreads");
    EXPECT_EQ(5, child.exit_code) << child.out << child.err;
    EXPECT_EQ("", child.err);
  }
}

// Wine's JScript, whose script asks for a hundred thousand blocks.
TEST(Program, ThatNobodyHereWrote) {
  if (SearchPathA(nullptr, "cscript.exe", nullptr, 0, nullptr, nullptr) == 0)
    GTEST_SKIP() << "there is no cscript here";
  const std::string script = "windows_words_" + hz_test::ExpectedLine() + ".js";
  std::ofstream(script) << "var seen = {}, list = [], text = '';\n"
                           "for (var i = 0; i < 20000; ++i) {\n"
                           "  var word = 'w' + (i * 7919 % 1009);\n"
                           "  seen[word] = (seen[word] || 0) + 1;\n"
                           "  list.push(word + i);\n"
                           "}\n"
                           "list.sort();\n"
                           "for (var word in seen) text += word + seen[word];\n"
                           "WScript.Echo(list.length + ' ' + text.length + ' ' + list[77]);\n";
  const ChildResult ours =
      RunChild({"run_with.exe", Dll(), "cscript", "/nologo", script}, {{"HZ_STATS", "1"}});
  EXPECT_EQ("20000 5953 w100166\n", ours.out);
  EXPECT_EQ(0, ours.exit_code);
  const std::size_t at = ours.err.find(" alloc_small=");
  ASSERT_NE(std::string::npos, at) << ours.err;
  EXPECT_LT(50'000, std::atoi(ours.err.c_str() + at + 13)) << ours.err;
  EXPECT_EQ(std::string::npos, ours.err.find("hz: fatal")) << ours.err;
  std::remove(script.c_str());
}

// --- what the copies of this program do

TEST(DISABLED_Child, TellsWhetherItIsServed) {
  void* p = std::malloc(100);
  auto* const number = new int;
  std::printf("owned: %d %d\n", hz_owns(p), hz_owns(number));
  delete number;
  std::free(p);
}

TEST(DISABLED_Child, FreesItsStack) {
  alignas(16) char here[100] = {};
  std::free(Opaque(static_cast<void*>(here + 16)));
  std::puts("went on");
}

TEST(DISABLED_Child, FreesTwice) {
  void* p = Opaque(std::malloc(100));
  std::free(p);
  std::free(Opaque(p));
  std::puts("went on");
}

TEST(DISABLED_Child, FreesTheInside) {
  auto* p = static_cast<char*>(Opaque(std::malloc(1000)));
  std::free(Opaque(p + 16));
  std::puts("went on");
  std::free(p);
}

TEST(DISABLED_Child, ExitsAmidThreads) {
  static std::atomic<int> begun{0};
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      for (std::size_t n = 0;; ++n) {
        void* blocks[50];
        for (std::size_t k = 0; k < 50; ++k) blocks[k] = Opaque(std::malloc((n + k) * 97 % 60'000));
        for (void* block : blocks) std::free(block);
        if (n == 100) ++begun;
      }
    }).detach();
  }
  while (begun < 3) Sleep(1);
  std::exit(5);
}

}  // namespace
