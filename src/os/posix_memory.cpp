// SPDX-License-Identifier: Apache-2.0
//
// POSIX: mappings. See os.hpp for the contract; called on cold paths only.
#include <errno.h>

#include <atomic>

#include "base/units.hpp"
#include "os/calls.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"
#include "os/probe.hpp"

// A place that is taken is refused by Linux since 4.17. Elsewhere the address is a hint, which is followed
// where nothing else is.
#if defined(__linux__) && !defined(MAP_FIXED_NOREPLACE)
#define MAP_FIXED_NOREPLACE 0x100000
#elif !defined(__linux__)
#define MAP_FIXED_NOREPLACE 0
#endif

// Sanitizers that keep a shadow of all memory. They end the program if its place is mapped before they start,
// and a heap in a library or before constructors starts earlier. They are known by functions that programs
// may call.
#ifdef __linux__
extern "C" __attribute__((weak)) void __msan_unpoison();
extern "C" __attribute__((weak)) void __tsan_acquire();
#endif

namespace hz::os {
namespace {

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

constinit std::atomic<bool> blocks_usable{true};  // at once, when they are extended

void* map_aligned(std::size_t bytes, std::size_t alignment, int protection) {
  if (bytes + alignment < bytes) return nullptr;
  const long got = call::mmap(nullptr, bytes + alignment, protection, kPrivate);
  if (got < 0) return nullptr;
  const auto raw = static_cast<std::uintptr_t>(got), start = align_up(raw, alignment);
  const std::size_t before = start - raw;
  if (before != 0) call::munmap(pointer(raw), before);
  if (alignment - before != 0) call::munmap(pointer(start + bytes), alignment - before);
  return pointer(start);
}

}  // namespace

void* reserve(std::size_t bytes, std::size_t alignment) {
  void* range = map_aligned(bytes, alignment, PROT_NONE);
  return range == nullptr ? nullptr : advised(range, bytes, Use::kBlocks);
}

bool commit(void* at, std::size_t bytes) { return call::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0; }

bool forbid(void* at, std::size_t bytes) {
  if (call::mmap(at, bytes, PROT_NONE, kPrivate | MAP_FIXED) < 0) return false;
  probe::purge(address(at), bytes);
  return advised(at, bytes, Use::kBlocks), true;
}

void forbid_uncommitted() { blocks_usable.store(false, std::memory_order_relaxed); }
bool forbids_uncommitted() { return !blocks_usable.load(std::memory_order_relaxed); }

bool may_have(void* at) {
#ifdef __linux__
  if (&__msan_unpoison != nullptr || &__tsan_acquire != nullptr) return false;
#endif
  const std::size_t bytes = page_bytes();
  const long got = call::mmap(at, bytes, PROT_NONE, kPrivate);
  if (got < 0) return false;
  void* const there = pointer(static_cast<std::uintptr_t>(got));
  return call::munmap(there, bytes) == 0 && there == at;
}

bool promises(std::size_t bytes) {
  if (bytes <= kGiB || bytes <= memory_bytes()) return true;
  const long at = call::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return at >= 0 && call::munmap(pointer(static_cast<std::uintptr_t>(at)), bytes) == 0;
}

Placed extend(void* at, std::size_t bytes, Use use) {
  const int protection = use == Use::kReading ? PROT_READ : PROT_READ | PROT_WRITE;
  const long got = call::mmap(at, bytes, protection, kPrivate | MAP_FIXED_NOREPLACE);
  if (got < 0) return got == -EEXIST ? Placed::kTaken : Placed::kRefused;
  void* const there = pointer(static_cast<std::uintptr_t>(got));
  if (there != at) {
    call::munmap(there, bytes);
    return Placed::kTaken;
  }
  // Asked for first: what a limit of the system refuses is refused now. Mapped anew then, because the kernel
  // may have joined it with the mapping before it. mprotect() would split that one, and the new part would be
  // taken for one that holds pages, as a whole in every core.
  if (use == Use::kBlocks && !blocks_usable.load(std::memory_order_relaxed))
    call::mmap(at, bytes, PROT_NONE, kPrivate | MAP_FIXED);
  advised(at, bytes, use);
  return Placed::kHere;
}

void* map(std::size_t bytes, std::size_t alignment, Use use) {
  void* at = map_aligned(bytes, alignment, PROT_READ | PROT_WRITE);
  return at == nullptr ? nullptr : advised(at, bytes, use);
}

bool unmap(void* at, std::size_t bytes) {
  if (call::munmap(at, bytes) != 0) return false;
  return probe::purge(address(at), bytes), true;
}

bool remap_fresh(void* at, std::size_t bytes) {
  if (call::mmap(at, bytes, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED) < 0) return false;
  probe::purge(address(at), bytes);
  return advised(at, bytes, Use::kBlocks), true;
}

}  // namespace hz::os
