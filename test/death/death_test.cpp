// SPDX-License-Identifier: Apache-2.0
//
// Runs every registered bug in a child process, in both modes of HZ_ON_INVALID. The child says on stdout
// which address, class and thread the report must name; the report on stderr must be that, to the letter, and
// nothing else.
//   abort:  the first report is fatal and the process ends by SIGABRT
//   report: the program goes on, and its heap is whole
// In a third mode the child handles SIGABRT, and in its handler allocates, frees and forks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "death/bug.hpp"
#include "death/handler.hpp"
#include "support/child.hpp"
#include "support/pattern.hpp"
#include "support/sanitizers.hpp"
#include "support/thread_number.hpp"
#include "support/tsan_options.hpp"

namespace hz_test {

void Scene::Expect(const void* block, std::size_t class_size) {
  Announce(block, class_size, std::to_string(ThreadNumber()));
}

void Scene::ExpectOfPurger(const void* block, std::size_t class_size) {
  if (!SeesSecondFreesLate()) return Expect(block, class_size);
  Announce(block, class_size, "purger");
}

void Scene::Announce(const void* block, std::size_t class_size, const std::string& thread) {
  last_class_ = class_size;
  char name[24] = "-";
  if (class_size != kNoClass) std::snprintf(name, sizeof name, "%zu", class_size);
  char line[160];
  const int length =
      std::snprintf(line, sizeof line, "ptr=0x%zx class=%s line=%s thread=%s\n",
                    reinterpret_cast<std::size_t>(block), name, api::LineName(), thread.c_str());
  if (write(1, line, static_cast<std::size_t>(length)) != length) _exit(2);
}

void Scene::Check(bool kept, const char* promise) {
  if (kept) return;
  all_kept_ = false;
  std::fprintf(stdout, "broken: %s\n", promise);
  std::fflush(stdout);
}

namespace {

// Blocks of one class: no two may share memory, so none was handed out twice.
void CheckBlocks(Scene& scene, std::size_t count, std::size_t size) {
  std::vector<unsigned char*> blocks(count);
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i] = static_cast<unsigned char*>(api::Malloc(size));
    if (blocks[i] == nullptr) return scene.Check(false, "allocation works after the report");
    FillPattern(blocks[i], std::min<std::size_t>(size, 256), i);
  }
  for (std::size_t i = 0; i < count; ++i) {
    scene.Check(HasPattern(blocks[i], std::min<std::size_t>(size, 256), i), "blocks keep their content");
  }
  for (unsigned char* block : blocks) api::Free(block);
  std::sort(blocks.begin(), blocks.end());
  scene.Check(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end(),
              "no block is handed out twice");
}

void CheckHeapIsWhole(Scene& scene) {
  const std::size_t of_class = scene.last_class() == Scene::kNoClass ? 64 : scene.last_class();
  for (int round = 0; round < 2; ++round) {
    CheckBlocks(scene, std::min<std::size_t>(10'000, (std::size_t{256} << 20) / of_class), of_class);
    for (const std::size_t size : {16u, 64u, 1000u, 5000u, 70'000u}) CheckBlocks(scene, 700, size);
  }
}

const Bug* FindBug(const char* name) {
  for (const Bug* bug = Bug::first; bug != nullptr; bug = bug->next) {
    if (std::strcmp(bug->name, name) == 0) return bug;
  }
  return nullptr;
}

int CommitBug(const char* name) {
  const Bug* bug = FindBug(name);
  if (bug == nullptr || ExpectedLine() != api::LineName()) return 2;
  HandleAbortIfAsked();
  Scene scene;
  bug->commit(scene);
  CheckHeapIsWhole(scene);
  return scene.all_kept() ? 0 : 3;
}

// With seals the class is the line's own choice: it is not compared.
void LeaveOutClasses(std::string& text) {
  constexpr std::string_view kClass = " class=";
  for (std::size_t at = 0; HasSeals() && (at = text.find(kClass, at)) != std::string::npos;) {
    at += kClass.size();
    text.replace(at, text.find(' ', at) - at, "*");
  }
}

ChildResult RunBug(const char* name, std::vector<Setting> settings) {
  settings.emplace_back("HZ_TEST_BUG", name);
#ifndef HZ_TEST_DIRECT
  const char* library = std::getenv("HZ_TEST_LIBRARY");
  if (library == nullptr) {
    ADD_FAILURE() << "HZ_TEST_LIBRARY must name the library to preload";
    return {};
  }
  settings.emplace_back("LD_PRELOAD", library);
#endif
  ChildResult result = RunChild({"/proc/self/exe"}, settings, 60);
  constexpr std::string_view kPurger = " thread=purger\n";
  const std::size_t announced = result.out.find(kPurger), told = result.err.find(" thread=");
  // Its number is not known beforehand, but it is not that of the main thread, which is the process's.
  if (announced != std::string::npos && told != std::string::npos &&
      result.err.compare(told + 8, std::string::npos, std::to_string(result.pid) + "\n") != 0)
    result.err.replace(told, result.err.find('\n', told) + 1 - told, kPurger);
  LeaveOutClasses(result.out);
  LeaveOutClasses(result.err);
  return result;
}

// What is gone with its pages is nothing any more.
std::string CodeOf(const Bug& bug) {
  return HasSeals() && std::strcmp(bug.name, "DoubleFreeLarge") == 0 ? "E02 not-allocated" : bug.code;
}
bool IsFatal(const Bug& bug) { return bug.severity == kFatal || HasSeals(); }

// The lines that stderr must hold, made from what the child announced.
std::string ExpectedReports(const std::string& announced, const Bug& bug, bool fatal, bool first_only) {
  std::istringstream lines(announced);
  std::string reports;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("ptr=", 0) != 0) continue;
    reports += std::string("hz: ") + (fatal ? "fatal: " : "error: ") + CodeOf(bug) + " " + line + "\n";
    if (first_only) break;
  }
  return reports;
}

// A report tells of the calls that led to it, as far as main, if stacks can be walked at all.
void ExpectCalls(const ChildResult& result, const Bug& bug) {
  if (result.err.empty() || result.calls.empty()) return;
  EXPECT_LE(std::count(result.calls.begin(), result.calls.end(), '\n'), 8 * 16) << result.calls;
  EXPECT_EQ(std::string::npos, result.calls.find("_ZN2hz")) << result.calls;
  const bool by_bug = result.calls.find("hz: called from ") == 0 && result.err.find("hz: fatal: ") == 0;
  EXPECT_TRUE(!by_bug || result.calls.find(bug.name) != std::string::npos) << result.calls;
}

// Nothing of the heap is where such a write goes.
bool HurtsNothing(const Bug& bug) { return KeepsNothingInSlots() && std::strncmp(bug.code, "E06", 3) == 0; }

// ThreadSanitizer does not know our barrier, so there is none, and a trim does not reach what another thread
// caches.
bool IsSeenOnlyByABarrier(const Bug& bug) {
  return kThreadSanitizer && SeesSecondFreesLate() &&
         (std::strstr(bug.name, "Remote") != nullptr || std::strstr(bug.name, "Idle") != nullptr);
}

class Committed : public ::testing::Test {
 public:
  explicit Committed(const Bug& bug) : bug_(bug) {}

 protected:
  void SetUp() override {
    if (IsSeenOnlyByABarrier(bug_)) GTEST_SKIP() << "not without a barrier on all threads";
    if (IsTiny() && std::strncmp(bug_.name, "Heap", 4) == 0) GTEST_SKIP() << "the line has no such heaps";
    if (HasSeals() && std::strncmp(bug_.code, "E06", 3) == 0)
      GTEST_SKIP() << "it is told by who would get it, and when the program ends: test/hostile";
  }

  const Bug& bug_;
};

class Abort : public Committed {
 public:
  using Committed::Committed;
  void TestBody() override {
    // The default as well as the word.
    for (const char* mode : {"", "abort"}) {
      const ChildResult result = RunBug(bug_.name, {{"HZ_ON_INVALID", mode}});
      const bool fatal = IsFatal(bug_) && !HurtsNothing(bug_);
      std::string reports = ExpectedReports(result.out, bug_, fatal, fatal);
      EXPECT_NE("", reports) << "the bug was not committed";
      if (HurtsNothing(bug_)) reports.clear();
      EXPECT_EQ(reports, result.err);
      ExpectCalls(result, bug_);
      if (fatal) {
        EXPECT_EQ(SIGABRT, result.signal) << result.out;
      } else {
        EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out;
      }
    }
  }
};

// A handler of SIGABRT runs when the heap holds no lock, and what it does ends.
class Handler : public Committed {
 public:
  using Committed::Committed;
  void TestBody() override {
    if (bug_.severity != kFatal || HurtsNothing(bug_)) GTEST_SKIP() << "nothing is fatal";
    const ChildResult result = RunBug(bug_.name, {{"HZ_TEST_HANDLER", "1"}, {"HZ_ON_INVALID", ""}});
    const std::size_t handled = result.out.find("handled\n");
    ASSERT_NE(std::string::npos, handled) << "signal " << result.signal << "\n" << result.out << result.err;
    EXPECT_EQ(std::string::npos, result.out.find("handled\n", handled + 1)) << result.out;
    EXPECT_EQ(ExpectedReports(result.out, bug_, true, true), result.err);
    EXPECT_EQ(SIGABRT, result.signal) << result.out;
  }
};

class Report : public Committed {
 public:
  using Committed::Committed;
  void TestBody() override {
    const ChildResult result = RunBug(bug_.name, {{"HZ_ON_INVALID", "report"}});
    std::string reports = ExpectedReports(result.out, bug_, false, false);
    EXPECT_NE("", reports) << "the bug was not committed";
    if (HurtsNothing(bug_)) reports.clear();
    EXPECT_EQ(reports, result.err);
    EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out;
  }
};

void RegisterTests() {
  for (const Bug* bug = Bug::first; bug != nullptr; bug = bug->next) {
    ::testing::RegisterTest("Abort", bug->name, nullptr, nullptr, __FILE__, __LINE__,
                            [bug]() -> Committed* { return new Abort(*bug); });
    ::testing::RegisterTest("Handler", bug->name, nullptr, nullptr, __FILE__, __LINE__,
                            [bug]() -> Committed* { return new Handler(*bug); });
    ::testing::RegisterTest("Report", bug->name, nullptr, nullptr, __FILE__, __LINE__,
                            [bug]() -> Committed* { return new Report(*bug); });
  }
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  if (const char* bug = std::getenv("HZ_TEST_BUG")) return hz_test::CommitBug(bug);
  hz_test::RegisterTests();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
