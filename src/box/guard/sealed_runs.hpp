// SPDX-License-Identifier: Apache-2.0
//
// The replacement of a canary for a block in its own run: its size stands beside the arena, where no block
// can reach it, and its redzone goes to the end of the page, where guard pages begin (security/fences.hpp).
// Called by: huge blocks of line secure, through sealed.hpp. Cost: less than a page is written or read.
#pragma once

#include <atomic>

#include "base/bytes.hpp"
#include "box/guard/redzone.hpp"

namespace hz {

struct SealedRuns {
  static constexpr std::size_t kBytesPerGranule = sizeof(std::size_t);

  static void open(std::uintptr_t base, std::uintptr_t table) {
    sizes.set(table - (base >> kGranuleShift) * kBytesPerGranule);
  }

  static std::size_t run_bytes(const void* block) { return noted(block) / 2; }
  // Returns true if a guard page stands below it.
  static bool has_fence_below(const void* block) { return noted(block) % 2 != 0; }
  // A block of `size` bytes begins there, and its last page has been had.
  static void seal_run(void* block, std::size_t size, bool fence_below) {
    const std::uintptr_t end = address(block) + size;
    Redzone::write(end, align_up(end, os::page_bytes()) - end);
    note(block, size, fence_below);
  }
  // The same of a block that becomes larger and keeps its place, whose pages have been had: what it gains
  // reads as zero. A redzone stands behind it at any moment.
  static void grow_run(void* block, std::size_t size) {
    const std::size_t before = run_bytes(block), with_redzone = align_up(before, os::page_bytes());
    if (size <= with_redzone) {
      note(block, size, has_fence_below(block));
    } else {
      seal_run(block, size, has_fence_below(block));
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a handler that ends the program checks runs
    const std::size_t gained = size < with_redzone ? size : with_redzone;
    clear_bytes(pointer(address(block) + before), gained - before);
  }
  // The same of a block that becomes smaller and keeps its place.
  static void seal_run_again(void* block, std::size_t size) {
    const std::size_t with_redzone = align_up(run_bytes(block), os::page_bytes());
    clear_bytes(pointer(address(block) + size), with_redzone - size);
    seal_run(block, size, has_fence_below(block));
  }
  static bool is_run_sealed(const void* block) {
    const std::uintptr_t end = address(block) + run_bytes(block);
    return Redzone::is_whole(end, align_up(end, os::page_bytes()));
  }
  // Returns true if the redzone is whole up to `size`, and for Redzone::kMost bytes at least. For a block
  // that grows to that size on its last page: the rest of the redzone stays.
  static bool is_run_sealed_up_to(const void* block, std::size_t size) {
    const std::uintptr_t end = address(block) + run_bytes(block), to = align_up(end, os::page_bytes());
    const std::uintptr_t least =
        size < run_bytes(block) + Redzone::kMost ? end + Redzone::kMost : address(block) + size;
    return Redzone::is_whole(end, least < to ? least : to);
  }

 private:
  // The compiler's order alone: a handler that ends the program checks runs.
  static void note(const void* block, std::size_t size, bool fence_below) {
    std::atomic_signal_fence(std::memory_order_release);
    __atomic_store_n(size_of(block), size * 2 + (fence_below ? 1 : 0), __ATOMIC_RELAXED);
  }
  static std::size_t noted(const void* block) { return __atomic_load_n(size_of(block), __ATOMIC_RELAXED); }
  // Twice the size of the huge block there, and 1.
  static std::size_t* size_of(const void* block) {
    return static_cast<std::size_t*>(
        pointer(sizes.get() + (address(block) >> kGranuleShift) * kBytesPerGranule));
  }

  static inline constinit OnceWord<std::uintptr_t> sizes{0};  // as if the table began at address 0
};

}  // namespace hz
