// SPDX-License-Identifier: Apache-2.0
//
// The operating system is Linux: advice about memory, the machine and waiting by way of the C library's plain
// system call wrappers; what it shares with others begins with posix. See os.hpp for the contract; called on
// cold paths only.
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/units.hpp"
#include "os/linux_file.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"
#include "os/probe.hpp"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

namespace hz::os {
namespace {

constinit HugePages huge_pages =
    HugePages::kAsTheSystemSays;  // said before there is a heap, read by it alone
constinit std::atomic<bool> named{false};
// A bit for each of 8192 processors, as usable_cpus() found them when the heap opened; the C library's own
// type ends at 1024.
constinit unsigned long process_cpus[128] = {};

// Neighbours of one name are one mapping, as they are without: what is mapped beside what has its name
// already has none for the moment of two calls. Linux has it since 5.17, where it was built with it; else it
// says EINVAL.
void name(void* at, std::size_t bytes, Use use) {
  const char* const name = use == Use::kBlocks ? "hakozuna" : "hakozuna tables";
  if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, bytes, name) != 0 && errno != ENOMEM)
    named.store(false, std::memory_order_relaxed);
}

}  // namespace

void name_mappings(bool wanted) { named.store(wanted, std::memory_order_relaxed); }

void prefer_huge_pages(HugePages choice) { huge_pages = choice; }

// All of the range alike, or pieces of it could not become one mapping again.
void* advised(void* at, std::size_t bytes, Use use) {
  if (named.load(std::memory_order_relaxed)) name(at, bytes, use);
  if (use == Use::kBlocks && huge_pages != HugePages::kAsTheSystemSays)
    madvise(at, bytes, huge_pages == HugePages::kAlways ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return at;
}

bool forbid_huge_pages(void* at, std::size_t bytes) {
  const KeepErrno keep;
  madvise(at, bytes, MADV_NOHUGEPAGE);  // fails only where the kernel knows no huge pages
  return true;
}

void* map_wiped_on_fork() {
  const KeepErrno keep;
  void* page = map(page_bytes(), page_bytes());
  if (page == nullptr || madvise(page, page_bytes(), MADV_WIPEONFORK) == 0) return page;
  unmap(page, page_bytes());
  return nullptr;
}

bool purge(void* at, std::size_t bytes, Use) {
  const KeepErrno keep;
  // Pages that the program locked: since Linux 5.18.
  const bool gone = madvise(at, bytes, MADV_DONTNEED) == 0 ||
                    (errno == EINVAL && madvise(at, bytes, MADV_DONTNEED_LOCKED) == 0);
  if (gone) probe::purge(address(at), bytes);
  return gone;
}

bool move_pages(void* from, void* to, std::size_t bytes) {
  // Linux has it since 5.7. Who does not know the flag refuses it for every block.
  static constinit std::atomic<bool> unknown{false};
  if (unknown.load(std::memory_order_relaxed)) return false;
  const KeepErrno keep;
  if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == to) return true;
  const bool whole = ((address(from) | address(to) | bytes) & (page_bytes() - 1)) == 0;
  if (errno == EINVAL && whole) unknown.store(true, std::memory_order_relaxed);
  return false;
}

// Advice that changes nothing: the kernel looks for holes all the same, whatever lies in front of them.
bool is_mapped(void* at, std::size_t bytes) {
  const KeepErrno keep;
  return madvise(at, bytes, MADV_NORMAL) == 0;
}

std::size_t memory_bytes() {
  constexpr std::size_t kNotAsked = SIZE_MAX;
  static constinit std::atomic<std::size_t> known{kNotAsked};
  std::size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes != kNotAsked) return bytes;
  const KeepErrno keep;
  struct sysinfo info;
  bytes = sysinfo(&info) == 0 ? static_cast<std::size_t>(info.totalram) * info.mem_unit : 0;
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

unsigned current_cpu() {
  const KeepErrno keep;
  const int cpu = sched_getcpu();
  return cpu > 0 ? static_cast<unsigned>(cpu) : 0;
}

unsigned usable_cpus() {
  const KeepErrno keep;
  const long bytes = syscall(SYS_sched_getaffinity, getpid(), sizeof process_cpus, process_cpus);
  unsigned cpus = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof process_cpus[0]); ++i)
    cpus += static_cast<unsigned>(__builtin_popcountl(process_cpus[i]));
  return cpus;
}

void settle_this_thread(const char* name) {
  const struct sched_param normal = {};
  prctl(PR_SET_NAME, name, 0, 0, 0);
  // By system call: musl's sched_setscheduler() refuses everything.
  syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &normal);
  syscall(SYS_sched_setaffinity, 0, sizeof process_cpus, process_cpus);
}

void system_random(void* out, std::size_t bytes) {
  const KeepErrno keep;
  if (syscall(SYS_getrandom, out, bytes, GRND_NONBLOCK) == static_cast<long>(bytes)) return;
  std::uint64_t word = 0;
  const auto* seed = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
  if (seed != nullptr)
    memcpy(&word, seed + 8, sizeof word);  // the first half is the C library's stack canary
  for (auto* to = static_cast<unsigned char*>(out); bytes != 0; --bytes) {
    struct timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    word = (word ^ static_cast<std::uint64_t>(now.tv_nsec)) * 0x9E3779B97F4A7C15U;
    word ^= word >> 32;
    *to++ = static_cast<unsigned char>(word);
  }
}

std::uint64_t milliseconds() {
  const KeepErrno keep;
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

std::uint64_t thread_id() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }
const char* program_name() { return program_invocation_short_name; }

std::size_t program_path(char* out, std::size_t room) {
  const KeepErrno keep;
  const ssize_t bytes = readlink("/proc/self/exe", out, room);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void wait_on(const std::uint32_t* word, std::uint32_t while_value) {
  const KeepErrno keep;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_value, nullptr, nullptr, 0);
}

void wake_one(const std::uint32_t* word) {
  const KeepErrno keep;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace hz::os
