// SPDX-License-Identifier: Apache-2.0
//
// The arena's range of addresses: reserved at once and committed in steps, or, under a limit of address space, mapped
// in place as it is needed. Called by the arena under its lock; a system call a step. Range and steps are multiples of
// a huge page, for the system gives one only where all of its addresses are usable at the first touch.
#pragma once

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz {

struct AddressRange {
  static constexpr std::size_t kTiB = 1024 * kGiB;
  static constexpr std::size_t kHugePage = 2 * kMiB;  // what x86-64 and most arm64 systems have
  static constexpr std::size_t kCommitStep = 2 * kHugePage;

  std::uintptr_t base = 0;
  std::size_t bytes = 0;
  std::uintptr_t committed = 0;  // usable up to here
  bool grows = false;            // extends itself instead of committing reserved space

  // False if the system refuses; then nothing is taken.
  bool open(std::size_t all_bytes, std::size_t usable_bytes) {
    base = grows ? place_growing(usable_bytes) : place_reserved(all_bytes, usable_bytes);
    bytes = all_bytes;
    committed = base + usable_bytes;
    return base != 0;
  }

  bool commit_to(std::uintptr_t end) {
    if (end <= committed) return true;
    std::uintptr_t generous = align_up(end - base, kCommitStep) + base;
    if (generous > base + bytes) generous = base + bytes;
    return commit(generous) || commit(end);
  }

 private:
  static std::uintptr_t place_reserved(std::size_t all_bytes, std::size_t usable_bytes) {
    void* range = os::reserve(all_bytes, kHugePage);
    if (range == nullptr) return 0;
    if (os::commit(range, usable_bytes) && os::forbid_huge_pages(range, usable_bytes)) return address(range);
    os::unmap(range, all_bytes);
    return 0;
  }
  // Somewhere far from where the system places its own mappings, so that there is room to grow; at random, so that the
  // place is no more predictable than any other mapping.
  static std::uintptr_t place_growing(std::size_t usable_bytes) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::uintptr_t at = 16 * kTiB + os::random_word() % (16 * kTiB / kHugePage) * kHugePage;
      if (os::extend(pointer(at), usable_bytes) && os::forbid_huge_pages(pointer(at), usable_bytes)) return at;
    }
    return 0;
  }

  bool commit(std::uintptr_t end) {
    void* from = pointer(committed);
    if (!(grows ? os::extend(from, end - committed) : os::commit(from, end - committed))) return false;
    committed = end;
    return true;
  }
};

}  // namespace hz
