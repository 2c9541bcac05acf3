// SPDX-License-Identifier: Apache-2.0
//
// The operating system is Linux: advice about memory, the machine and waiting; what it shares with others
// begins with posix. See os.hpp for the contract; called on cold paths only.
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <atomic>

#include "base/bytes.hpp"
#include "base/compiler.hpp"
#include "base/units.hpp"
#include "os/calls.hpp"
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
#if defined(HZ_EMULATED)  // test/CMakeLists.txt
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

// glibc's (since 2.35), under our own name: the place of each thread's record of restartable sequences.
extern "C" __attribute__((weak)) const std::ptrdiff_t rseq_offset __asm__("__rseq_offset");

namespace hz::os {
namespace {

constexpr std::size_t kOfCpu = 4;  // in that record

constinit HugePages huge_pages =
    HugePages::kAsTheSystemSays;  // said before there is a heap, read by it alone
// True if khugepaged may make huge pages of memory for blocks; written with `huge_pages`.
constinit bool collapses = false;
constinit std::atomic<bool> named{false};
// A bit for each of 8192 processors, as usable_cpus() found them when the heap opened; the C library's own
// type ends at 1024.
constinit unsigned long process_cpus[128] = {};

// Neighbours of one name are one mapping, as they are without: what is mapped beside what has its name
// already has none for the moment of two calls. Linux has it since 5.17, where it was built with it; else it
// says EINVAL.
void name(void* at, std::size_t bytes, Use use) {
  const char* const name = use == Use::kBlocks ? "hakozuna" : "hakozuna tables";
  const long error = call::prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, address(at), bytes, name);
  if (error != 0 && error != -ENOMEM) named.store(false, std::memory_order_relaxed);
}

// Returns true if the kernel gives huge pages to programs that did not ask for them.
bool gives_huge_pages() {
  char buffer[8];
  FileBytes mode("/sys/kernel/mm/transparent_hugepage/enabled", buffer);
  return mode.next() == '[' && mode.next() == 'a';  // "[always] madvise never"
}

constexpr std::size_t kHugePage = 2 * kMiB;
constinit std::atomic<std::uintptr_t> last_taken_out{0};  // 0: none ever was

void may_collapse(std::uintptr_t begin, std::uintptr_t end) {
  constexpr std::uintptr_t kSome = 1;
  if (begin >= end || last_taken_out.load(std::memory_order_relaxed) == 0) return;
  call::madvise(pointer(begin), end - begin, MADV_HUGEPAGE);
  last_taken_out.store(kSome, std::memory_order_relaxed);
}

// Takes the huge pages in which a purge begins or ends out of khugepaged's reach: it would bring back all of
// one as long as a page of it lives. Those that are purged whole may be huge again. The memory around is the
// arena's, whose stretches consist of whole huge pages (box/source/address_plan.hpp). Cost: a system call for
// each, none if the purge before had the same one.
void keep_from_collapsing(std::uintptr_t begin, std::uintptr_t end) {
  const std::uintptr_t whole = align_up(begin, kHugePage), whole_end = end & ~(kHugePage - 1);
  may_collapse(whole, whole_end);
  const auto take_out = [](std::uintptr_t at) {
    if (last_taken_out.exchange(at, std::memory_order_relaxed) != at)
      call::madvise(pointer(at), kHugePage, MADV_NOHUGEPAGE);
  };
  if (begin != whole) take_out(whole - kHugePage);
  if (end != whole_end && whole <= whole_end) take_out(whole_end);
}

}  // namespace

void name_mappings(bool wanted) { named.store(wanted, std::memory_order_relaxed); }

void prefer_huge_pages(HugePages choice) {
  huge_pages = choice;
  collapses = choice == HugePages::kAlways || (choice == HugePages::kAsTheSystemSays && gives_huge_pages());
}

// All of the range alike, or pieces of it could not become one mapping again.
void* advised(void* at, std::size_t bytes, Use use) {
  if (named.load(std::memory_order_relaxed)) name(at, bytes, use);
  if (use == Use::kBlocks && huge_pages != HugePages::kAsTheSystemSays)
    call::madvise(at, bytes, huge_pages == HugePages::kAlways ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return at;
}

bool forbid_huge_pages(void* at, std::size_t bytes) {
  call::madvise(at, bytes, MADV_NOHUGEPAGE);  // fails only where the kernel knows no huge pages
  return true;
}

void* map_wiped_on_fork() {
  void* page = map(page_bytes(), page_bytes());
  if (page == nullptr || call::madvise(page, page_bytes(), MADV_WIPEONFORK) == 0) return page;
  unmap(page, page_bytes());
  return nullptr;
}

bool purge(void* at, std::size_t bytes, Use use) {
  if (collapses && use == Use::kBlocks) keep_from_collapsing(address(at), address(at) + bytes);
  // Pages that the program locked: since Linux 5.18.
  const long error = call::madvise(at, bytes, MADV_DONTNEED);
  const bool gone = error == 0 || (error == -EINVAL && call::madvise(at, bytes, MADV_DONTNEED_LOCKED) == 0);
  if (gone) probe::purge(address(at), bytes);
  return gone;
}

void purged_within(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t from, std::uintptr_t to) {
  if (!collapses) return;
  const std::uintptr_t first = from & ~(kHugePage - 1), behind = align_up(to, kHugePage);
  may_collapse(first < begin ? align_up(begin, kHugePage) : first,
               behind > end ? end & ~(kHugePage - 1) : behind);
}

bool move_pages(void* from, void* to, std::size_t bytes) {
  // Linux has it since 5.7. A kernel that does not know the flag refuses it for every block.
  static constinit std::atomic<bool> unknown{kEmulated};
  if (unknown.load(std::memory_order_relaxed)) return false;
  const long got = call::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
  if (got >= 0) return true;
  const bool whole = ((address(from) | address(to) | bytes) & (page_bytes() - 1)) == 0;
  if (got == -EINVAL && whole) unknown.store(true, std::memory_order_relaxed);
  return false;
}

// A kernel that refuses may have unmapped `to` before, and another thread may have mapped something there. A
// filter refuses before that, and so does a kernel for these reasons.
bool move_mapping(void* from, std::size_t bytes, void* to, std::size_t to_bytes) {
  const long got = call::mremap(from, bytes, to_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  if (got == -EPERM || got == -EACCES || got == -ENOSYS) unmap(to, to_bytes);
  return got >= 0;
}

// Advice that changes nothing: the kernel looks for holes all the same, whatever lies in front of them.
bool is_mapped(void* at, std::size_t bytes) { return call::madvise(at, bytes, MADV_NORMAL) == 0; }

std::size_t page_bytes() {
  static constinit std::atomic<std::size_t> known{0};
  const std::size_t bytes = known.load(std::memory_order_relaxed);
  if (HZ_LIKELY(bytes != 0)) return bytes;
  known.store(auxiliary_value(AT_PAGESZ), std::memory_order_relaxed);
  return known.load(std::memory_order_relaxed);
}

std::size_t memory_bytes() {
  constexpr std::size_t kNotAsked = SIZE_MAX;
  static constinit std::atomic<std::size_t> known{kNotAsked};
  std::size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes != kNotAsked) return bytes;
  struct sysinfo info;
  bytes = call::sysinfo(&info) == 0 ? static_cast<std::size_t>(info.totalram) * info.mem_unit : 0;
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

unsigned current_cpu() {
  if (&rseq_offset != nullptr) {
    // The kernel writes this number if the C library registered it; otherwise it is negative.
    const auto at = address(__builtin_thread_pointer()) + static_cast<std::uintptr_t>(rseq_offset) + kOfCpu;
    const auto cpu = __atomic_load_n(static_cast<const std::int32_t*>(pointer(at)), __ATOMIC_RELAXED);
    if (HZ_LIKELY(cpu >= 0)) return static_cast<unsigned>(cpu);
  }
  return call::getcpu();
}

unsigned usable_cpus() {
  const long bytes = call::sched_getaffinity(call::getpid(), sizeof process_cpus, process_cpus);
  unsigned cpus = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof process_cpus[0]); ++i)
    cpus += static_cast<unsigned>(__builtin_popcountl(process_cpus[i]));
  return cpus;
}

void settle_this_thread(const char* name) {
  const struct sched_param normal = {};
  call::prctl(PR_SET_NAME, address(name), 0, 0, nullptr);
  call::make(SYS_sched_setscheduler, 0, SCHED_OTHER, &normal);
  call::make(SYS_sched_setaffinity, 0, sizeof process_cpus, process_cpus);
}

void system_random(void* out, std::size_t bytes) {
  if (call::make(SYS_getrandom, out, bytes, GRND_NONBLOCK) == static_cast<long>(bytes)) return;
  std::uint64_t word = 0;
  const auto* seed = static_cast<const unsigned char*>(pointer(auxiliary_value(AT_RANDOM)));
  if (seed != nullptr)
    copy_bytes(&word, seed + 8, sizeof word);  // the first half is the C library's stack canary
  for (auto* to = static_cast<unsigned char*>(out); bytes != 0; --bytes) {
    struct timespec now = {};
    call::clock_gettime(CLOCK_MONOTONIC, &now);
    word = (word ^ static_cast<std::uint64_t>(now.tv_nsec)) * 0x9E3779B97F4A7C15U;
    word ^= word >> 32;
    *to++ = static_cast<unsigned char>(word);
  }
}

std::uint64_t milliseconds() {
  struct timespec now = {};
  call::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

std::uint64_t thread_id() { return static_cast<std::uint64_t>(call::gettid()); }
const char* program_name() { return program_invocation_short_name; }

std::size_t program_path(char* out, std::size_t room) {
  const long bytes = call::readlink("/proc/self/exe", out, room);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void wait_on(const std::uint32_t* word, std::uint32_t while_value) {
  call::futex(word, FUTEX_WAIT_PRIVATE, while_value, nullptr);
}

void wake_one(const std::uint32_t* word) { call::futex(word, FUTEX_WAKE_PRIVATE, 1, nullptr); }

}  // namespace hz::os
