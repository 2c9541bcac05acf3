// SPDX-License-Identifier: Apache-2.0
//
// free keeps errno, whatever happens inside.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/capture.hpp"
#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"

namespace {

using hz_test::kMiB;

constexpr std::size_t kSizes[] = {16, 100, 2000, 5000, 40'000, 65'536, 130'000, 1'000'000, 6'000'000};

std::vector<void*> WrittenBlocks(std::size_t size, std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t total = 0; total < bytes; total += size) {
    blocks.push_back(std::malloc(size));
    hz_test::FillPattern(blocks.back(), size, total);
  }
  return blocks;
}

// Enough of each size that bins overflow, spans retire and pages are given back on the way.
void ExpectErrnoKept() {
  for (const std::size_t size : kSizes) {
    const std::vector<void*> blocks = WrittenBlocks(size, 24 * kMiB);
    errno = 42;
    for (void* block : blocks) {
      std::free(block);
      ASSERT_EQ(42, errno) << size;
    }
  }
}

TEST(Free, OfNullDoesNothing) {
  errno = 42;
  std::free(hz_test::Opaque<void*>(nullptr));
  EXPECT_EQ(42, errno);
}

TEST(Free, KeepsErrnoWhilePurging) { ExpectErrnoKept(); }

TEST(Free, KeepsErrnoOfBlocksOfOtherThreads) {
  for (const std::size_t size : kSizes) {
    const std::vector<void*> blocks = WrittenBlocks(size, 8 * kMiB);
    std::thread([&] {
      errno = 42;
      for (void* block : blocks) {
        std::free(block);
        ASSERT_EQ(42, errno) << size;
      }
    }).join();
  }
}

// A size is right if it is what the block was asked for, or last resized to: a block that shrank where it
// stood as well.
TEST(Free, SizedWithTheRightSizeIsSilent) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "the C library has them from 2.43 on";
  auto* sized = hz_test::FindFunction<void(void*, std::size_t)>("free_sized");
  auto* aligned = hz_test::FindFunction<void(void*, std::size_t, std::size_t)>("free_aligned_sized");
  ASSERT_TRUE(sized != nullptr && aligned != nullptr);
  constexpr std::size_t kAll[] = {0,      1,      16,      17,        100,       288,      512,
                                  576,    1000,   1024,    2048,      2049,      4096,     9000,
                                  65'536, 65'537, 300'000, 3'800'000, 4'194'304, 6'000'000};
  hz_test::Capture capture;
  for (const std::size_t size : kAll) {
    sized(std::malloc(size), size);
    sized(std::calloc(1, size), size);
    for (const std::size_t from : kAll) {
      if (size != 0) sized(std::realloc(std::malloc(from), size), size);
    }
    for (const std::size_t alignment : {16u, 64u, 1024u, 4096u, 65'536u, 1u << 20}) {
      aligned(aligned_alloc(alignment, size), alignment, size);
    }
  }
  EXPECT_EQ("", capture.Text());
}

// From here on the calls that give memory back fail with EPERM. Each test is a process of its own under
// CTest.
bool ForbidGivingBack() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  const sock_fprog filter = {5, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(FreeLast, KeepsErrnoWhenTheSystemCallFails) {
  if (!ForbidGivingBack()) GTEST_SKIP() << "no seccomp here";
  ExpectErrnoKept();
}

// Pages that the system would not take are not clean: calloc must not believe that they are.
TEST(FreeLast, CallocZeroesWhenPagesCouldNotBeGivenBack) {
  if (!ForbidGivingBack()) GTEST_SKIP() << "no seccomp here";
  for (const std::size_t size : kSizes) {
    for (void* block : WrittenBlocks(size, 24 * kMiB)) std::free(block);
    malloc_trim(0);
    std::vector<void*> clean;
    for (std::size_t total = 0; total < 24 * kMiB; total += size) {
      clean.push_back(std::calloc(1, size));
      ASSERT_NE(nullptr, clean.back());
      ASSERT_TRUE(hz_test::IsZero(clean.back(), size)) << size;
    }
    for (void* block : clean) std::free(block);
  }
}

}  // namespace
