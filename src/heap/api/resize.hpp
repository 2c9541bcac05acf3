// SPDX-License-Identifier: Apache-2.0
//
// A block that gets another size: where it lies, by its pages, or as a copy. Called by heap.hpp's realloc, by
// the direct API's hz_expand, and by the functions of the C library that may not fail to shrink. A block that
// stays costs a look at it, one that moves a malloc, a copy and a free.
#pragma once

#include <cstring>

#include "heap/api/allocation.hpp"
#include "heap/api/questions.hpp"

namespace hz {

template <class Line>
struct Resize {
  using S = State<Line>;
  using H = Huge<Line>;
  using F = Heaps<Line>;
  using M = MitigationOf<Line>;
  using A = Allocation<Line>;
  using Q = Questions<Line>;
  using Entered = typename Threads<Line>::Entered;

  // Moves, resizes or, for a size of 0, frees a block.
  HZ_INLINE static void* realloc(void* block, std::size_t size, const void* caller) {
    if (size == 0) return Heap<Line>::free(block), nullptr;
    const std::size_t slot = Q::slot_bytes(block);
    if (slot == 0 && M::grows_in_page(block, size)) return block;
    const std::size_t old_size =
        HZ_LIKELY(slot != 0) ? slot : Heap<Line>::usable_size_slow(block);  // reports what is no block
    if (old_size == 0 && !Q::is_empty(block)) return A::no_memory();
    if (M::may_stay(size, old_size) || M::stays_in_slot(block, size)) return block;
    if (M::resizes_run(block, old_size, size) && Q::is_run(block))
      return resized(block, old_size, size, caller);
    void* moved = nullptr;
    if (HZ_UNLIKELY(slot == 0 && HeapWays<Line>::holder_of(block) != 0)) {
      moved = aligned_beside(block, 1, size);
    } else if (size > old_size && old_size >= M::kGrowsAsRun && is_alone()) {
      moved = A::crossed(kHugeBin, size, 1, caller);
    } else {
      moved = Heap<Line>::at_hand(size);
      if (moved == nullptr) moved = A::of_size(size, caller);
    }
    if (moved == nullptr) return size <= old_size ? kept(block, size) : nullptr;
    std::memcpy(moved, block, size < old_size ? size : old_size);
    Heap<Line>::free(block);
    return moved;
  }

  // Allocates in the heap of `block`, for the thread that has it. `alignment` is a power of two.
  static void* aligned_beside(const void* block, std::size_t alignment, std::size_t size) {
    void* beside = nullptr;
    if (HZ_UNLIKELY(HeapWays<Line>::holder_of(block) != 0) &&
        F::allocate_beside(block, alignment, size, beside))
      return beside;
    return Heap<Line>::aligned(alignment, size);
  }

  // Shrinks a live block where it lies, because no other memory is available.
  static void* kept(void* block, std::size_t size) {
    const Kind kind = classify<Line>(block).kind;
    if (kind == Kind::kExtension) {
      Extensions::shrink(block, size);
    } else if (!M::kExactSizes || kind == Kind::kInHeap) {
      FaultReport::keep(block);
    } else if (!M::resize_in_slot(block, size)) {
      resize_run(block, H::run_bytes(block), size, nullptr);
    }
    return block;
  }

  // Resizes the block where it lies, if it can have `size` bytes there. Returns the bytes that it has then; 0
  // after a report if it is no block. Only a huge block can change.
  HZ_INLINE static std::size_t in_place(void* block, std::size_t size, const void* caller) {
    const std::size_t old_size = Heap<Line>::usable_size(block);
    if constexpr (M::kExactSizes)
      return (old_size != 0 || Q::is_empty(block)) && M::resize_in_slot(block, size) ? size : old_size;
    if (old_size == 0 || !Q::is_run(block)) return old_size;
    return resize_run(block, old_size, size, caller) ? H::usable_size(block) : old_size;
  }

 private:
  // Relaxed: only speed depends on it.
  static bool is_alone() { return S::global.thread_count.load(std::memory_order_relaxed) <= 1; }

  // Resizes a run where it lies. Returns false if it cannot be.
  static bool resize_run(void* block, std::size_t before, std::size_t size, const void* caller) {
    Sample sample = Sample::kNone;
    {
      Entered here;
      if (!H::resize_in_place(here.thread(), block, size)) return false;
      sample = Quotas<Line>::of_run(here.thread(), block);
      Counts<Line>::resized(here.thread(), before, H::run_bytes(block));
    }
    if (HZ_UNLIKELY(sample != Sample::kNone)) Quotas<Line>::add(sample, block, kHugeBin, caller);
    return true;
  }
  static void* resized(void* block, std::size_t old_size, std::size_t size, const void* caller) {
    Sample sample = Sample::kNone;
    void* to = nullptr;
    {
      Entered here;
      old_size = H::run_bytes(block);  // as it was counted
      to = H::resize(here.thread(), block, size);
      if (to == nullptr) return A::no_memory();
      sample = Quotas<Line>::of_run(here.thread(), to);
      Counts<Line>::resized(here.thread(), old_size, H::run_bytes(to));
    }
    if (HZ_UNLIKELY(sample != Sample::kNone)) Quotas<Line>::add(sample, to, kHugeBin, caller);
    return to;
  }
};

}  // namespace hz
