// SPDX-License-Identifier: Apache-2.0
//
// Limits that come from the container. Two ways to have one:
//   in a mount namespace of its own, where the file with the limit of its control group is another one (needs
//   root):
//     what we read is real but for that number, and the kernel enforces nothing
//   in a real group, made below the directory HZ_TEST_CGROUP, one that is delegated to the test: version 2
//   with the
//     memory controller enabled for its children, or version 1's memory
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "stress/footprint.hpp"
#include "stress/limited.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kContainer = 96 * kMiB;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The file that limits this process's group, in the usual places; empty if it lies elsewhere or there is
// none.
std::string OwnLimitFile() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t path = line.find(":/");
    if (path == std::string::npos) continue;
    const std::string group = line.substr(path + 1);
    const bool unified = line.rfind("0::", 0) == 0;
    if (!unified && line.find(":memory:") == std::string::npos) continue;
    const std::string file = unified ? "/sys/fs/cgroup" + group + "/memory.max"
                                     : "/sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes";
    if (Exists(file)) return file;
  }
  return "";
}

// Runs this test in a process that reads `limit` where the limit of its group stands.
template <class Work>
void WhereTheLimitReads(const std::string& limit, std::vector<Setting> settings, Work work) {
  if (std::getenv(kInsideProcess) != nullptr) return InProcessWith({}, work);
  const std::string file = OwnLimitFile();
  if (file.empty())
    GTEST_SKIP() << "the control group of this process has no limit of memory that can be seen";
  if (geteuid() != 0 || RunChild({"unshare", "-m", "true"}, {{"LD_PRELOAD", ""}}).exit_code != 0)
    GTEST_SKIP() << "no mount namespace can be had here (that needs root, and unshare)";
  char other[] = "/tmp/hz-limit-XXXXXX";
  const int fd = mkstemp(other);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(static_cast<ssize_t>(limit.size()), write(fd, limit.data(), limit.size()));
  close(fd);
  InProcessWith(std::move(settings), work, "mount --bind " + std::string(other) + " '" + file + "'",
                {"unshare", "-m"});
  unlink(other);
}

TEST(Container, PercentOfItsMemory) {
  WhereTheLimitReads(std::to_string(kContainer) + "\n", {{"HZ_LIMIT_HARD", "50%"}}, [] {
    const Growth growth;
    Pile pile;
    errno = 0;
    while (pile.Grow(3000)) {
    }
    EXPECT_EQ(ENOMEM, errno);
    EXPECT_GE(pile.Bytes(), kContainer / 2 * 3 / 4);
    EXPECT_LE(growth.Bytes(), kContainer / 2 + kBeside);
    EXPECT_TRUE(pile.FreeAll());
  });
}

std::vector<Setting> LargeCaches() { return {{"HZ_RETAIN", "1000"}, {"HZ_THREAD_CACHE", "67108864"}}; }

TEST(Container, SoftLimitByDefault) {
  if (kUnderTool) GTEST_SKIP() << "resident memory means nothing here";
  WhereTheLimitReads(std::to_string(62 * kMiB) + "\n", LargeCaches(),
                     [] { EXPECT_LE(PeakOfGenerations(), 62 * kMiB); });
}

TEST(Container, WithoutALimitThereIsNone) {
  if (PurgesPromptly()) GTEST_SKIP() << "nothing much stays";
  if (kUnderTool) GTEST_SKIP() << "resident memory means nothing here";
  WhereTheLimitReads("max\n", LargeCaches(), [] { EXPECT_GT(PeakOfGenerations(), 72 * kMiB); });
}

// A group of its own for the test's process.
class RealGroup {
 public:
  // Empty: there is one. Else the reason why not.
  std::string Make() {
    const char* below = std::getenv("HZ_TEST_CGROUP");
    if (below == nullptr) return "HZ_TEST_CGROUP names no control group that tests may make groups in";
    path_ = std::string(below) + "/hz-test-" + std::to_string(getpid());
    if (mkdir(path_.c_str(), 0755) != 0) return "no group can be made below " + std::string(below);
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      std::ofstream limit(path_ + file, std::ios::in);
      if (limit << kContainer << std::flush) {
        std::ofstream(path_ + "/memory.swap.max", std::ios::in) << 0;
        return "";
      }
    }
    return "groups below " + std::string(below) + " have no memory controller";
  }
  ~RealGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  std::string Join() const { return "echo $$ > '" + path_ + "/cgroup.procs'"; }

 private:
  std::string path_;
};

void TouchUntilRefused() {
  Pile pile;
  errno = 0;
  while (pile.Bytes() < 2 * kContainer && pile.Grow(3000)) {
  }
  EXPECT_EQ(ENOMEM, errno);
  EXPECT_GE(pile.Bytes(), kContainer / 2);
  EXPECT_TRUE(pile.FreeAll());
}

TEST(ControlGroup, HardLimitInsteadOfAKill) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer needs more than the group has";
  if (std::getenv(kInsideProcess) != nullptr) return TouchUntilRefused();
  RealGroup group;
  const std::string why = group.Make();
  if (!why.empty()) GTEST_SKIP() << why;
  InProcessWith({{"HZ_LIMIT_HARD", "80%"}}, TouchUntilRefused, group.Join());
}

// The counterpart: the kernel means it.
TEST(ControlGroup, WithoutItThereIsAKill) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer needs more than the group has";
  if (std::getenv(kInsideProcess) != nullptr) return TouchUntilRefused();
  RealGroup group;
  const std::string why = group.Make();
  if (!why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(SIGKILL, RunInProcess({{"HZ_LIMIT_HARD", "0"}}, group.Join(), {}).signal);
}

}  // namespace
}  // namespace hz_test
