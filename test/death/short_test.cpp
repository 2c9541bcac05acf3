// SPDX-License-Identifier: Apache-2.0
//
// Misuse as the last thing that a short program does: it frees wrongly and returns from main at once.
// Whatever the line, a message with the right code comes, and the program is killed; and short programs that
// do nothing wrong end in silence. The program runs itself as a child, with HZ_TEST_MISUSE naming what to do.
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "death/bug.hpp"
#include "death/handler.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/tsan_options.hpp"

namespace hz_test {
namespace {

// What a misuse may be called: a slot that is free may be known as such (E03) or as none (E02), by line and
// moment.
constexpr const char* kFreed = "E03 E02";
constexpr const char* kInside = "E04";
constexpr const char* kBeside = "E02 E03 E04";
constexpr const char* kNowhere = "E01 E02";  // the tables may lie apart
constexpr const char* kElsewhere = "E01";

char in_data[256];
const char in_text[256] = "text";

void* New(std::size_t size) {
  void* block = api::Malloc(size);
  if (block == nullptr) _exit(4);
  std::memset(block, 1, size < 4096 ? size : 4096);
  return block;
}
void FreeIn(void* block) {
  std::thread([=] { api::Free(block); }).join();
}

// A thread that has done `task` and stays until the process is gone.
template <class Task>
void LeaveBehind(Task task) {
  static std::atomic<bool> done{false};
  std::thread([=] {
    task();
    done.store(true);
    for (;;) pause();
  }).detach();
  while (!done.load()) usleep(100);
}

// --- freed twice; a block of so many bytes

void Twice(std::size_t n) {
  void* a = New(n);
  api::Free(a);
  api::Free(a);
}
void Interleaved(std::size_t n) {
  void *a = New(n), *b = New(n);
  api::Free(a);
  api::Free(b);
  api::Free(a);
}
void ThriceInTurn(std::size_t n) {
  void *a = New(n), *b = New(n), *c = New(n);
  for (void* block : {a, b, c, a, b, c}) api::Free(block);
}
void AfterNeighbours(std::size_t n) {
  void* blocks[40];
  for (void*& block : blocks) block = New(n);
  for (void* block : blocks) api::Free(block);
  api::Free(blocks[11]);
}
void AfterRealloc(std::size_t n) {
  void *a = New(n), *b = New(n), *moved = api::Realloc(a, 40 * n);
  api::Free(b);
  if (moved == a) api::Free(moved);
  api::Free(a);
}
void OfCalloc(std::size_t n) {
  void *a = api::Calloc(1, n), *b = api::Calloc(1, n);
  for (void* block : {a, b, a}) api::Free(block);
}
void OfAligned(std::size_t n) {
  void *a = api::AlignedAlloc(256, n), *b = api::AlignedAlloc(256, n);
  for (void* block : {a, b, a}) api::Free(block);
}
void FirstByAnother(std::size_t n) {
  void* a = New(n);
  FreeIn(a);
  api::Free(a);
}
void ThenByAnother(std::size_t n) {
  void *a = New(n), *b = New(n);
  std::atomic<bool> freed{false};
  // Begun before the frees: the thread's own state may be as large, and have the place of `a`.
  std::thread other([&] {
    while (!freed.load()) usleep(100);
    api::Free(a);
  });
  api::Free(a);
  api::Free(b);
  freed.store(true);
  other.join();
}
void OfOneThatEnded(std::size_t n) {
  void* a = nullptr;
  std::thread([&] {
    a = New(n);
    api::Free(New(n));
  }).join();
  void* b = New(n);
  for (void* block : {a, b, a}) api::Free(block);
}
void ByTwoOthers(std::size_t n) {
  void* a = New(n);
  FreeIn(a);
  FreeIn(a);
}
void WhileOneStays(std::size_t n) {
  void *a = New(n), *b = New(n);
  LeaveBehind([=] { api::Free(a); });
  api::Free(b);
  api::Free(a);
}
void ByOneThatStays(std::size_t n) {
  void *a = New(n), *b = New(n);
  LeaveBehind([=] {
    for (void* block : {a, b, a}) api::Free(block);
  });
}
void BySizedAndNot(std::size_t n) {
  void *a = New(n), *b = New(n);
  api::FreeSized(a, n);
  api::Free(b);
  api::Free(a);
}

// --- freed, but no block

void Interior(std::size_t n, std::ptrdiff_t by) { api::Free(Inside(New(n), by)); }
void By1(std::size_t n) { Interior(n, 1); }
void By8(std::size_t n) { Interior(n, 8); }
void By16(std::size_t n) { Interior(n, 16); }
void By32(std::size_t n) { Interior(n, 32); }
void ByHalf(std::size_t n) { Interior(n, static_cast<std::ptrdiff_t>(n / 2)); }
void ByAPage(std::size_t n) { Interior(n, 4096); }
void ByOneLess(std::size_t n) { Interior(n, -1); }
void By16Less(std::size_t n) { Interior(n, -16); }
// The highest block of many, and not the last slot of its span: nobody has what lies behind it.
void JustBehind(std::size_t n) {
  std::uintptr_t a = 0;
  std::size_t slot = 0;
  for (int i = 0; i < 50 || a % 65536 + 2 * slot > 65536; ++i) {
    void* block = New(n);
    a = std::max(a, reinterpret_cast<std::uintptr_t>(block));
    slot = api::UsableSize(block);
  }
  api::Free(reinterpret_cast<void*>(Opaque(a + slot)));
}
// A slot of the block's own span that nobody ever had.
void FarBehind(std::size_t n) {
  void* a = New(n);
  const std::size_t slot = api::UsableSize(a);
  const std::size_t at = reinterpret_cast<std::uintptr_t>(a) % 65536;
  api::Free(
      Inside(a, static_cast<std::ptrdiff_t>((65536 / slot - 2) * slot) - static_cast<std::ptrdiff_t>(at)));
}
void InAFreedOne(std::size_t n) {
  void* a = New(n);
  api::Free(a);
  api::Trim();
  api::Free(Inside(a, static_cast<std::ptrdiff_t>(n / 2)));
}
void BetweenAFreedOne(std::size_t n) {
  char* a = static_cast<char*>(New(n));
  api::Free(a);
  api::Free(Inside(a, 24));
}

void OfTheStack(std::size_t) {
  char local[256];
  api::Free(Inside(local, 64 - reinterpret_cast<std::ptrdiff_t>(local) % 64));
}
void OfData(std::size_t) { api::Free(Opaque(in_data + 64)); }
void OfText(std::size_t) { api::Free(Inside(const_cast<char*>(in_text), 64)); }
void OfCode(std::size_t) { api::Free(reinterpret_cast<void*>(&OfText)); }
void NearNull(std::size_t) { api::Free(reinterpret_cast<void*>(Opaque<std::uintptr_t>(16))); }
void OfNobody(std::size_t) { api::Free(reinterpret_cast<void*>(Opaque<std::uintptr_t>(0x4141414141414140))); }
void OfTheEnvironment(std::size_t) { api::Free(Opaque(std::getenv("HZ_TEST_MISUSE"))); }
// They lie below all blocks, and nothing else does for a long way.
void OfTheTables(std::size_t) {
  const auto block = reinterpret_cast<std::uintptr_t>(New(64));
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  std::uintptr_t from = 0;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr && std::sscanf(line, "%zx", &from) == 1) {
    if (from + (std::uintptr_t{16} << 40) > block) break;
  }
  api::Free(reinterpret_cast<void*>(Opaque(from)));
}

// --- nothing wrong

void Nothing(std::size_t n) {
  void *a = New(n), *b = New(n);
  for (void* block : {b, a}) api::Free(block);
}
void ABusyCrowd(std::size_t n) {
  static std::atomic<unsigned> rounds{0};
  static std::atomic<void*> passed{nullptr};
  for (int i = 0; i < 4; ++i) {
    std::thread([n] {
      for (;;) {
        void* blocks[50];
        for (void*& block : blocks) block = New(n);
        for (void*& block : blocks) api::Free(passed.exchange(block));
        rounds.fetch_add(1);
      }
    }).detach();
  }
  while (rounds.load() < 200) usleep(100);
}
void AChildThatEnds(std::size_t n) {
  void *a = New(n), *b = New(n);
  if (fork() == 0) {
    for (void* block : {b, a}) api::Free(block);
    std::exit(0);
  }
  int status = 0;
  if (wait(&status) < 0 || status != 0) _exit(5);
  for (void* block : {b, a}) api::Free(block);
}

// In the middle of what it interrupts. Not where the C library's own exit handlers would free into our heap.
[[maybe_unused]] void AnExitInAHandler(std::size_t n) {
  std::signal(SIGALRM, [](int) { std::exit(0); });
  const itimerval soon = {{0, 0}, {0, 3000 + getpid() % 50 * 100}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  for (;;) {
    void* blocks[400];
    for (void*& block : blocks) block = New(n);
    for (void* block : blocks) api::Free(block);
  }
}

struct Misuse {
  const char* name;
  const char* codes;  // any of them; null: nothing is wrong
  void (*commit)(std::size_t size);
  std::vector<std::size_t> sizes;
};

const std::vector<std::size_t> kAny = {16, 64, 1000, 5000, 40'000, 200'000, 8 << 20};
const std::vector<std::size_t> kSlots = {16, 64, 1000, 5000, 30'000};
const std::vector<std::size_t> kOnce = {64};

const Misuse kMisuses[] = {
    {"Twice", kFreed, Twice, kAny},
    {"Interleaved", kFreed, Interleaved, kAny},
    {"ThriceInTurn", kFreed, ThriceInTurn, kAny},
    {"AfterNeighbours", kFreed, AfterNeighbours, kSlots},
    {"AfterRealloc", kFreed, AfterRealloc, kSlots},
    {"OfCalloc", kFreed, OfCalloc, kAny},
    {"OfAligned", kFreed, OfAligned, kAny},
    {"FirstByAnother", kFreed, FirstByAnother, kAny},
    {"ThenByAnother", kFreed, ThenByAnother, kSlots},
    {"OfOneThatEnded", kFreed, OfOneThatEnded, kSlots},
    {"ByTwoOthers", kFreed, ByTwoOthers, kAny},
    {"WhileOneStays", kFreed, WhileOneStays, kSlots},
    {"ByOneThatStays", kFreed, ByOneThatStays, kSlots},
    {"BySizedAndNot", kFreed, BySizedAndNot, kAny},
    {"By1", kInside, By1, kAny},
    {"By8", kInside, By8, kAny},
    {"By16", kInside, By16, {64, 1000, 5000, 40'000, 200'000, 8 << 20}},
    {"By32", kInside, By32, {64, 1000, 5000, 40'000, 200'000, 8 << 20}},
    {"ByHalf", kInside, ByHalf, {64, 5000, 200'000, 8 << 20}},
    {"ByAPage", kInside, ByAPage, {5000, 40'000, 200'000, 8 << 20}},
    {"ByOneLess", kBeside, ByOneLess, kSlots},
    {"By16Less", kBeside, By16Less, {64, 1000, 5000, 30'000}},
    {"JustBehind", kBeside, JustBehind, kSlots},
    {"FarBehind", kBeside, FarBehind, {16, 64, 1000, 5000}},
    {"InAFreedOne", kBeside, InAFreedOne, {5000, 40'000, 200'000, 8 << 20}},
    {"BetweenAFreedOne", kBeside, BetweenAFreedOne, {64, 1000, 5000, 40'000, 200'000}},
    {"OfTheStack", kElsewhere, OfTheStack, kOnce},
    {"OfData", kElsewhere, OfData, kOnce},
    {"OfText", kElsewhere, OfText, kOnce},
    {"OfCode", kElsewhere, OfCode, kOnce},
    {"NearNull", kElsewhere, NearNull, kOnce},
    {"OfNobody", kElsewhere, OfNobody, kOnce},
    {"OfTheEnvironment", kElsewhere, OfTheEnvironment, kOnce},
    {"OfTheTables", kNowhere, OfTheTables, kOnce},
    {"Nothing", nullptr, Nothing, kAny},
    {"ABusyCrowd", nullptr, ABusyCrowd, kSlots},
    {"AChildThatEnds", nullptr, AChildThatEnds, kSlots},
#ifdef HZ_TEST_DIRECT
    {"AnExitInAHandler",
     nullptr,
     AnExitInAHandler,
     {16, 17, 64, 65, 1000, 1001, 5000, 5001, 40'000, 200'000, 200'001}},
#endif
};

std::string NameOf(const Misuse& misuse, std::size_t size) {
  return misuse.name + std::string("_") + std::to_string(size);
}

ChildResult RunShort(const std::string& name, const char* mode, const char* handler = "") {
  std::vector<Setting> settings = {
      {"HZ_TEST_MISUSE", name}, {"HZ_ON_INVALID", mode}, {"HZ_TEST_HANDLER", handler}};
#ifndef HZ_TEST_DIRECT
  const char* library = std::getenv("HZ_TEST_LIBRARY");
  settings.emplace_back("LD_PRELOAD", library == nullptr ? "HZ_TEST_LIBRARY-is-not-set" : library);
#endif
  return RunChild({"/proc/self/exe"}, settings, 60);
}

// "hz: fatal: E0n ..." with a code that the misuse may have.
void ExpectTold(const ChildResult& result, const Misuse& misuse, const std::string& start) {
  ASSERT_EQ(0u, result.err.find(start + "E0")) << "said: " << result.err;
  EXPECT_NE(nullptr, std::strstr(misuse.codes, result.err.substr(start.size(), 3).c_str())) << result.err;
}

class Short : public ::testing::Test {
 public:
  explicit Short(const Misuse& misuse) : misuse_(misuse) {}
  void TestBody() override {
    // ThreadSanitizer does not know our barrier: what another thread caches is out of reach.
    if (kThreadSanitizer && std::strstr(misuse_.name, "Stays") != nullptr) GTEST_SKIP();
    for (const std::size_t size : misuse_.sizes) {
      SCOPED_TRACE(size);
      const ChildResult result = RunShort(NameOf(misuse_, size), "");
      if (misuse_.codes == nullptr) {
        EXPECT_EQ("", result.err);
        EXPECT_EQ(0, result.exit_code) << "signal " << result.signal;
        continue;
      }
      ExpectTold(result, misuse_, "hz: fatal: ");
      EXPECT_EQ(SIGABRT, result.signal) << result.exit_code;
      if (size == misuse_.sizes.front()) ExpectHandled(size, result.err);
      const ChildResult told = RunShort(NameOf(misuse_, size), "report");
      ExpectTold(told, misuse_, "hz: error: ");
      EXPECT_EQ(0, told.exit_code) << "signal " << told.signal;
    }
  }

 private:
  void ExpectHandled(std::size_t size, const std::string& report) {
    const ChildResult handled = RunShort(NameOf(misuse_, size), "", "1");
    EXPECT_EQ("handled\n", handled.out);
    EXPECT_EQ(report.substr(0, 13), handled.err.substr(0, 13)) << "the first report, and no other";
    EXPECT_EQ(1, std::count(handled.err.begin(), handled.err.end(), '\n')) << handled.err;
    EXPECT_EQ(SIGABRT, handled.signal) << handled.exit_code;
  }

  const Misuse& misuse_;
};

int CommitMisuse(const std::string& name) {
  if (ExpectedLine() != api::LineName()) return 2;
  HandleAbortIfAsked();
  for (const Misuse& misuse : kMisuses) {
    for (const std::size_t size : misuse.sizes) {
      if (NameOf(misuse, size) == name) return misuse.commit(size), 0;
    }
  }
  return 3;
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  if (const char* name = std::getenv("HZ_TEST_MISUSE")) return hz_test::CommitMisuse(name);
  for (const hz_test::Misuse& misuse : hz_test::kMisuses) {
    ::testing::RegisterTest("Short", misuse.name, nullptr, nullptr, __FILE__, __LINE__,
                            [&misuse]() -> hz_test::Short* { return new hz_test::Short(misuse); });
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
