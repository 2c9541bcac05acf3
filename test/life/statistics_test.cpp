// SPDX-License-Identifier: Apache-2.0
//
// The statistics line where a process does not end by itself, or has no stderr left: on SIGTERM, wherever it
// interrupts the heap, and into a file; and that nothing of this happens to a program that asked for no
// statistics.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "life/scene.hpp"
#include "stress/blocks.hpp"

namespace hz_test {
namespace {

// Until the alarm of RunChild, or the signal. Now and then all rest: line secure holds a lock in nearly every
// moment of its work.
void* Churn(void*) {
  Random random(3);
  for (;;) {
    void* blocks[200];
    for (void*& block : blocks) block = api::Malloc(LogSize(random, 18));
    for (void* block : blocks) api::Free(block);
    usleep(5000);
  }
}

bool TerminationIsTheDefault() {
  struct sigaction now = {};
  sigaction(SIGTERM, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

const Scene terminated("Terminated", [] {
  pthread_t thread;
  for (int i = 0; i < 2; ++i) Require(pthread_create(&thread, nullptr, &Churn, nullptr) == 0, "a thread");
  if (fork() == 0) {
    usleep(static_cast<useconds_t>(20'000 + getpid() % 32 * 1000));  // another moment in every run
    kill(getppid(), SIGTERM);
    _exit(0);
  }
  Churn(nullptr);
});
const Scene own_handler("OwnHandler", [] {
  signal(SIGTERM, [](int) { _exit(41); });
  raise(SIGTERM);
});
const Scene untouched("Untouched",
                      [] { Require(TerminationIsTheDefault(), "SIGTERM's action is the default"); });
const Scene ignored("Ignored", [] {
  signal(SIGTERM, SIG_IGN);
  setenv("HZ_TEST_SCENE", "StillIgnored", 1);
  char* const arguments[] = {const_cast<char*>("/proc/self/exe"), nullptr};
  execv(arguments[0], arguments);
});
const Scene still_ignored("StillIgnored", [] {
  raise(SIGTERM);
  _exit(42);
});
const Scene closes("ClosesEverything", [] {
  Require(chdir("/") == 0, "a folder");
  for (int fd = 0; fd < 1024; ++fd) close(fd);
});
const Scene forks("ForksOnce", [] {
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  waitpid(child, nullptr, 0);
});

bool IsOneLine(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

std::string Beginning() { return "hz: stats line=" + ExpectedLine() + " version="; }

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Statistics, AreWrittenOnTermination) {
  unsigned complete = 0;
  for (int run = 0; run < 20; ++run) {
    const ChildResult result = RunScene("Terminated", {{"HZ_STATS", "1"}});
    EXPECT_EQ(SIGTERM, result.signal) << "the parent is to see why it ended: " << result.exit_code;
    EXPECT_EQ(0U, result.err.find(Beginning())) << result.err;
    EXPECT_TRUE(IsOneLine(result.err)) << result.err;
    complete += result.err.find(" incomplete=1") == std::string::npos ? 1 : 0;
  }
  EXPECT_GT(complete, 0U) << "in some moments no lock is held";
  EXPECT_EQ(0U, RunScene("Terminated", {{"HZ_STATS", "json"}}).err.find("{\"hz\":\"stats\","));
}

TEST(Statistics, ATerminationThatTheProgramHandlesIsItsOwn) {
  EXPECT_EQ(41, RunScene("OwnHandler", {{"HZ_STATS", "1"}}).exit_code);
  EXPECT_EQ(42, RunScene("Ignored", {{"HZ_STATS", "1"}}).exit_code);
}

TEST(Statistics, NobodyAskedAndNothingIsInstalled) {
  EXPECT_EQ(0, RunScene("Untouched").exit_code);
  // With glibc our library shows the default action where SIGTERM has its handler.
#ifdef __GLIBC__
  constexpr int kSeen = 0;
#else
  constexpr int kSeen = 99;
#endif
  EXPECT_EQ(kSeen, RunScene("Untouched", {{"HZ_STATS", "1"}}).exit_code);
}

TEST(Statistics, NameProcessAndProgram) {
  const ChildResult result = RunScene("ForksOnce", {{"HZ_STATS", "1"}});
  EXPECT_NE(std::string::npos, result.err.find(" pid=")) << result.err;
  EXPECT_NE(std::string::npos, result.err.find(" program=exe ")) << result.err;
}

TEST(Statistics, GoToAFile) {
  std::string folder = ::testing::TempDir() + "hz-statistics-XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(folder.data()));
  const std::string one = folder + "/one", each = folder + "/each-%p";
  for (int run = 0; run < 2; ++run) {
    const ChildResult result = RunScene("ClosesEverything", {{"HZ_STATS_FILE", one}});
    EXPECT_EQ(0, result.exit_code);
    EXPECT_EQ("", result.err);
  }
  const std::string text = Contents(one);
  EXPECT_EQ(0U, text.find(Beginning())) << text;
  EXPECT_EQ(2, std::count(text.begin(), text.end(), '\n')) << "each run adds a line: " << text;
  // Parent and child each write one of their own.
  EXPECT_EQ("", RunScene("ForksOnce", {{"HZ_STATS", "json"}, {"HZ_STATS_FILE", each}}).err);
  unsigned files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.rfind("each-", 0) != 0) continue;
    const std::string line = Contents(entry.path());
    const std::string pid = name.substr(5);
    EXPECT_NE(std::string::npos, line.find("\"pid\":" + pid + ",\"program\":\"exe\"")) << line;
    EXPECT_TRUE(IsOneLine(line)) << line;
    ++files;
  }
  EXPECT_EQ(2U, files);
  const ChildResult lost = RunScene("ForksOnce", {{"HZ_STATS_FILE", folder + "/no/such/folder"}});
  EXPECT_EQ(0U, lost.err.find(Beginning())) << "on stderr where the file cannot be written: " << lost.err;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hz_test
