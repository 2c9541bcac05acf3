// SPDX-License-Identifier: Apache-2.0
//
// The purger where the system does not help it: without a barrier on all threads it can take back no cache;
// it comes, does the rest, and ends. And what one free may hand to the system.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "returns/service.hpp"
#include "support/child.hpp"

namespace hz_test {
namespace {

// From here on, in all threads, membarrier fails.
bool RefuseBarriers() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof program / sizeof program[0], program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

void RunAlone(const char* test, const std::vector<Setting>& settings) {
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  const ChildResult result =
      RunChild({program, std::string("--gtest_filter=") + test, "--gtest_also_run_disabled_tests"}, settings);
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
  EXPECT_NE(std::string::npos, result.out.find("1 test from 1 test suite ran.")) << result.out;
}

// More threads than it revokes in a tick. Some never touch the heap again, and their caches stay.
TEST(Restricted, DISABLED_NoBarrier) {
  const Watchdog watchdog;
  ASSERT_TRUE(RefuseBarriers());
  Service service(24);
  ASSERT_TRUE(service.WakePurger());
  EXPECT_TRUE(Within(15, [] { return Purger() == 0; })) << "it has nothing to do";
  service.Fill();
  service.Empty();
}
TEST(Restricted, WithoutABarrierThePurgerEnds) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  RunAlone("Restricted.DISABLED_NoBarrier", {});
}

// The same, taken away while it sleeps or works.
TEST(Restricted, DISABLED_NoBarrierLater) {
  const Watchdog watchdog;
  Service service(24);
  ASSERT_TRUE(service.WakePurger());
  ASSERT_TRUE(RefuseBarriers());
  service.Fill();
  service.Empty();
  EXPECT_TRUE(Within(15, [] { return Purger() == 0; }));
}
TEST(Restricted, ABarrierTakenAwayLaterEndsIt) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  RunAlone("Restricted.DISABLED_NoBarrierLater", {});
}

// However much is free: what is left is for the next ones.
constexpr std::size_t kAtOnce = 8 * kMiB;

TEST(Restricted, DISABLED_BoundedFrees) {
  const Watchdog watchdog;
  constexpr std::size_t kBlocks = 4096;
  const std::size_t size = HasSeals() ? 30'000 : 60'000;  // it lies in a span
  static void* blocks[kBlocks];
  for (void*& block : blocks) block = api::Malloc(size);
  unsigned above = 0;
  std::uint64_t purged = HeapStats().bytes_purged;
  for (void* block : blocks) {
    api::Free(block);
    const std::uint64_t now = HeapStats().bytes_purged;
    if (now - purged > kAtOnce) ++above;
    purged = now;
  }
  EXPECT_LE(above, 1U) << "the one that finds the program emptied, for nobody may come again";
  EXPECT_GT(purged, kBlocks / 2 * size) << "without a purger the frees see to it";
}
TEST(Restricted, OneFreeHandsABoundedAmountToTheSystem) {
  RunAlone("Restricted.DISABLED_BoundedFrees", {{"HZ_BACKGROUND", "0"}});
}

}  // namespace
}  // namespace hz_test
