// SPDX-License-Identifier: Apache-2.0
//
// Control groups as they are laid out in the field, and as they never should be: each layout is a directory
// that the test writes and has read instead of the machine's root.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz_test {
namespace {

using hz::kMiB;
using hz::os::Container;

class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hz-cgroup-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name));
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Groups(const std::string& text) { Write("/proc/self/cgroup", text); }
  void Mounts(const std::string& text) { Write("/proc/self/mountinfo", text); }
  Container Read() { return hz::os::container(root_.c_str()); }

  static std::string Mount(const std::string& root, const std::string& point, const std::string& rest) {
    return "31 23 0:28 " + root + " " + point + " rw,nosuid,relatime " + rest + "\n";
  }
  static std::string Unified(const std::string& root, const std::string& point) {
    return Mount(root, point, "shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot");
  }
  static std::string Version1(const std::string& root, const std::string& point,
                              const std::string& controllers) {
    return Mount(root, point, "shared:9 master:3 - cgroup cgroup rw," + controllers);
  }
  static constexpr const char* kOther =
      "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n23 22 0:21 / /proc rw - proc proc rw\n";

  std::string root_;
};

#define EXPECT_CONTAINER(memory_, high_, cpus_) \
  do {                                          \
    const Container got = Read();               \
    EXPECT_EQ(memory_, got.memory);             \
    EXPECT_EQ(high_, got.memory_high);          \
    EXPECT_EQ(cpus_, got.cpus);                 \
  } while (false)

TEST_F(Cgroup, Version2) {
  Groups("0::/user.slice/app.service\n");
  Mounts(kOther + Unified("/", "/sys/fs/cgroup"));
  const std::string at = "/sys/fs/cgroup/user.slice/app.service/";
  Write(at + "memory.max", "134217728\n");
  Write(at + "memory.high", "100663296\n");
  Write(at + "cpu.max", "150000 100000\n");
  EXPECT_CONTAINER(128 * kMiB, 96 * kMiB, 2u);
}

TEST_F(Cgroup, Version2WithoutLimits) {
  Groups("0::/app\n");
  Mounts(Unified("/", "/sys/fs/cgroup"));
  Write("/sys/fs/cgroup/app/memory.max", "max\n");
  Write("/sys/fs/cgroup/app/memory.high", "max\n");
  Write("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_CONTAINER(0u, 0u, 0u);
}

TEST_F(Cgroup, TheSmallestOnTheWayUpCounts) {
  Groups("0::/a/b/c\n");
  Mounts(Unified("/", "/sys/fs/cgroup"));
  Write("/sys/fs/cgroup/a/memory.max", "67108864\n");
  Write("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "268435456\n");
  Write("/sys/fs/cgroup/a/b/memory.high", "33554432\n");
  Write("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  Write("/sys/fs/cgroup/a/b/other/memory.max", "1048576\n");
  EXPECT_CONTAINER(64 * kMiB, 32 * kMiB, 1u);
}

// A control group namespace: the container sees its own group as the root.
TEST_F(Cgroup, Version2InANamespace) {
  Groups("0::/\n");
  Mounts(Unified("/", "/sys/fs/cgroup"));
  Write("/sys/fs/cgroup/memory.max", "67108864");
  Write("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_CONTAINER(64 * kMiB, 0u, 1u);
}

TEST_F(Cgroup, Version1) {
  Groups("12:cpuset:/\n4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
  Mounts(kOther + Version1("/", "/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct") +
         Version1("/", "/sys/fs/cgroup/memory", "memory") + Version1("/", "/sys/fs/cgroup/cpuset", "cpuset"));
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "134217728\n");
  Write("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_CONTAINER(128 * kMiB, 0u, 3u);
}

// The container runtime mounts the container's own group only; the process reads its path from the machine's
// root.
TEST_F(Cgroup, Version1WithABoundGroup) {
  Groups("4:memory:/docker/abc/inner\n3:cpu,cpuacct:/docker/abc/inner\n");
  Mounts(Version1("/docker/abc", "/sys/fs/cgroup/memory", "memory") +
         Version1("/docker/abc", "/sys/fs/cgroup/cpu", "cpu,cpuacct"));
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n");
  Write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "67108864\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_CONTAINER(32 * kMiB, 0u, 2u);
}

TEST_F(Cgroup, Version1WithoutLimits) {
  Groups("4:memory:/\n3:cpu:/\n");
  Mounts(Version1("/", "/m", "memory") + Version1("/", "/c", "cpu"));
  for (const char* none :
       {"9223372036854771712\n", "18446744073709551615\n", "99999999999999999999999999\n", "-1\n"}) {
    Write("/m/memory.limit_in_bytes", none);
    Write("/c/cpu.cfs_quota_us", "-1\n");
    Write("/c/cpu.cfs_period_us", "100000\n");
    EXPECT_CONTAINER(0u, 0u, 0u);
  }
}

// Version 2 for services, version 1 for the controllers.
TEST_F(Cgroup, Hybrid) {
  Groups("4:memory:/m\n3:cpu:/\n0::/unified/here\n");
  Mounts(Version1("/", "/sys/fs/cgroup/cpu", "cpu") + Version1("/", "/sys/fs/cgroup/memory", "memory") +
         Version1("/", "/sys/fs/cgroup/systemd", "xattr,name=systemd") +
         Unified("/", "/sys/fs/cgroup/unified"));
  Write("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "67108864\n");
  Write("/sys/fs/cgroup/unified/unified/here/cgroup.procs", "1\n");
  Write("/sys/fs/cgroup/unified/unified/here/cpu.max", "200000 100000\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 2u);
}

TEST_F(Cgroup, OutsideOfItsNamespace) {
  Groups("0::/../other\n");
  Mounts(Unified("/", "/sys/fs/cgroup"));
  Write("/sys/fs/cgroup/memory.max", "67108864\n");
  Write("/sys/fs/other/memory.max", "33554432\n");
  EXPECT_CONTAINER(0u, 0u, 0u);
}

// The mount was made in the namespace outside: its root lies above ours.
TEST_F(Cgroup, MountedFromTheNamespaceOutside) {
  Groups("0::/../other\n");
  Mounts(Unified("/..", "/sys/fs/cgroup"));
  Write("/sys/fs/cgroup/other/memory.max", "33554432\n");
  EXPECT_CONTAINER(32 * kMiB, 0u, 0u);
}

// On a host, the mounts of its containers may be visible; they say nothing about processes that are not
// inside.
TEST_F(Cgroup, AnothersMountIsNotOurs) {
  Groups("0::/system.slice/app\n");
  Mounts(Unified("/docker/abc", "/var/lib/docker/abc/cgroup") + Unified("/docker/abcde", "/y") +
         Unified("/system", "/x") + Unified("/", "/sys/fs/cgroup"));
  Write("/var/lib/docker/abc/cgroup/memory.max", "33554432\n");
  Write("/x/memory.max", "33554432\n");
  Write("/y/app/memory.max", "33554432\n");
  Write("/x.slice/app/memory.max", "33554432\n");
  Write("/sys/fs/cgroup/system.slice/app/memory.max", "67108864\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 0u);
}

TEST_F(Cgroup, OddNamesAreUnderstood) {
  Groups("0::/with space/a:b\\c\n");
  Mounts(Unified("/with\\040space", "/sys/fs/c\\134g\\040roup"));
  Write("/sys/fs/c\\g roup/a:b\\c/memory.max", "67108864\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 0u);
}

TEST_F(Cgroup, ADeletedGroupHasItsParents) {
  Groups("0::/a/b (deleted)\n");
  Mounts(Unified("/", "/sys/fs/cgroup"));
  Write("/sys/fs/cgroup/a/memory.max", "67108864\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 0u);
}

TEST_F(Cgroup, LongLinesAreSteppedOver) {
  const std::string overlay(10000, 'l');
  Groups("0::/" + std::string(600, 'g') + "\n4:memory:/m\n");
  Mounts("30 22 0:50 / / rw - overlay overlay rw,lowerdir=" + overlay + "\n" + Unified("/", "/unified") +
         Version1("/", "/m", "memory"));
  Write("/m/m/memory.limit_in_bytes", "67108864\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 0u);
}

TEST_F(Cgroup, DeepNestingHasAnEnd) {
  std::string group;
  for (int i = 0; i < 200; ++i) group += "/d";
  Groups("0::" + group + "\n");
  Mounts(Unified("/", "/cg"));
  Write("/cg" + group + "/memory.max", "67108864\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 0u);
}

TEST_F(Cgroup, MoreThanThereIsLimitsNothing) {
  Groups("0::/a\n");
  Mounts(Unified("/", "/cg"));
  Write("/cg/a/memory.max", std::to_string(hz::os::memory_bytes()));
  Write("/cg/a/memory.high", std::to_string(hz::os::memory_bytes() + kMiB));
  EXPECT_CONTAINER(0u, 0u, 0u);
  Write("/cg/a/memory.max", std::to_string(hz::os::memory_bytes() - 1));
  EXPECT_CONTAINER(hz::os::memory_bytes() - 1, 0u, 0u);
}

TEST_F(Cgroup, BrokenFilesLimitNothing) {
  EXPECT_CONTAINER(0u, 0u, 0u);
  for (const char* groups :
       {"", "0", "0:", "0::", "::::\n", "\n\n\n", "0::\n", "0::a\n", "memory:memory:memory\n"}) {
    for (const std::string& mounts : {std::string(), std::string("a\n"), std::string("1 2 3 / /cg\n"),
                                      std::string("1 2 3 / /cg - cgroup2\n"), std::string("- - - - - -\n"),
                                      Unified("", ""), std::string("1 2 3 / /cg rw cgroup2 cgroup2 rw\n")}) {
      Groups(groups);
      Mounts(mounts);
      SCOPED_TRACE(groups + mounts);
      EXPECT_CONTAINER(0u, 0u, 0u);
    }
  }
  Groups("0::/a\n");
  Mounts(Unified("/", "/cg"));
  for (const char* text : {"", "banana", "\n", "max", "0", "0x10", "-5"}) {
    Write("/cg/a/memory.max", text);
    Write("/cg/a/cpu.max", text);
    EXPECT_CONTAINER(0u, 0u, 0u);
  }
  for (const char* text : {"100000", "0 100000", "100000 0", "100000 max", "99999999999999999999999 1"}) {
    Write("/cg/a/cpu.max", text);
    EXPECT_CONTAINER(0u, 0u, 0u);
  }
}

TEST_F(Cgroup, ADirectoryInsteadOfAFile) {
  Groups("0::/a\n");
  Mounts(Unified("/", "/cg"));
  Write("/cg/a/memory.max/x", "67108864");
  EXPECT_CONTAINER(0u, 0u, 0u);
}

// Where every distribution has them; what tells is that the process's own group is there.
TEST_F(Cgroup, UsualPlacesNeedNoMountinfo) {
  Groups("0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/cgroup.procs", "");
  Write("/sys/fs/cgroup/a/b/memory.high", "33554432\n");
  Write("/sys/fs/cgroup/a/memory.max", "67108864\n");
  Write("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  EXPECT_CONTAINER(64 * kMiB, 32 * kMiB, 1u);
  Groups("0::/\n");
  Write("/sys/fs/cgroup/cgroup.procs", "");
  Write("/sys/fs/cgroup/memory.max", "134217728\n");
  EXPECT_CONTAINER(128 * kMiB, 0u, 0u);
}

TEST_F(Cgroup, UsualPlacesOfBothVersions) {
  Groups("4:memory:/m\n3:cpu,cpuacct:/c\n0::/u\n");
  Write("/sys/fs/cgroup/memory/m/cgroup.procs", "");
  Write("/sys/fs/cgroup/cpu/c/cgroup.procs", "");
  Write("/sys/fs/cgroup/unified/u/cgroup.procs", "");
  Write("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 2u);
}

// One group that is elsewhere, and all is looked up.
TEST_F(Cgroup, OneUnusualPlaceIsEnoughToReadMountinfo) {
  Groups("4:memory:/docker/abc\n3:cpu:/docker/abc\n");
  Mounts(Version1("/docker/abc", "/sys/fs/cgroup/memory", "memory") +
         Version1("/docker/abc", "/sys/fs/cgroup/cpu", "cpu"));
  Write("/sys/fs/cgroup/memory/cgroup.procs", "");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
  Write("/sys/fs/cgroup/cpu/docker/abc/cgroup.procs", "");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_CONTAINER(64 * kMiB, 0u, 2u);
}

TEST_F(Cgroup, AGroupOutsideOfTheNamespaceIsNotAtTheUsualPlace) {
  Groups("0::/../other\n");
  Write("/sys/fs/cgroup/cgroup.procs", "");
  Write("/sys/fs/other/cgroup.procs", "");
  Write("/sys/fs/other/memory.max", "67108864\n");
  EXPECT_CONTAINER(0u, 0u, 0u);
}

TEST_F(Cgroup, KeepsErrnoAndLeavesNoFileOpen) {
  Groups("0::/a\n");
  Mounts(Unified("/", "/cg"));
  const int before = dup(0);
  close(before);
  errno = 12345;
  Read();
  EXPECT_EQ(12345, errno);
  const int after = dup(0);
  close(after);
  EXPECT_EQ(before, after);
}

// Whatever this machine says, it makes sense.
TEST(CgroupOfThisMachine, IsRead) {
  const Container here = hz::os::container("");
  EXPECT_LT(here.memory, hz::os::memory_bytes());
  EXPECT_LT(here.memory_high, hz::os::memory_bytes());
  EXPECT_LE(here.cpus, 65536u);
}

TEST(CgroupOfThisMachine, KnowsWhereItMayRun) {
  cpu_set_t mask;
  ASSERT_EQ(0, sched_getaffinity(getpid(), sizeof mask, &mask));
  EXPECT_EQ(static_cast<unsigned>(CPU_COUNT(&mask)), hz::os::usable_cpus());
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
    _exit(hz::os::usable_cpus() == 1 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
}

}  // namespace
}  // namespace hz_test
