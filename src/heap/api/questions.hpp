// SPDX-License-Identifier: Apache-2.0
//
// Answers about an address: how many bytes are usable there, whether it is a block, whether moving it would
// let memory go. Called by heap.hpp, by resize.hpp and by the direct API. Takes a lock only where it says so.
#pragma once

#include "heap/api/judge.hpp"
#include "heap/boundary/boundary.hpp"

namespace hz {

template <class Line>
struct Questions {
  using H = Huge<Line>;
  using J = Judge<Line>;
  using F = Heaps<Line>;
  using M = MitigationOf<Line>;
  using Route = typename Line::Route;

  // Bytes of a slot that the program may have; 0: look closer.
  HZ_INLINE static std::size_t slot_bytes(const void* block) {
    const Bin bin = Route::bin(Route::find(State<Line>::global.route, address(block)));
    return HZ_LIKELY(bin - 1 < kLastBin && J::fault_of_slot(bin, block) == Fault::kNone)
               ? M::bytes_of(block, bin)
               : 0;
  }
  // Bytes usable in a live block; 0 after a report if it is none.
  HZ_INLINE static std::size_t usable_size(const void* block) {
    const Block<Line> found = classify<Line>(block);
    return block != nullptr && J::plausible(found, block) ? bytes_of(found, block) : 0;
  }
  // Bytes of what begins there, live or free; 0 where nothing of ours does. Reports nothing.
  static std::size_t bytes_at(const void* at) {
    const Block<Line> found = classify<Line>(at);
    return begins(found, at) ? bytes_of(found, at) : 0;
  }
  static bool owns(const void* at) { return begins(classify<Line>(at), at); }
  // A live block that has no byte; reports nothing.
  static bool is_empty(const void* block) {
    return M::kExactSizes && check(block) == Fault::kNone && bytes_at(block) == 0;
  }
  // Returns what a free would find wrong with it, as far as the line sees that at the free. Reports nothing.
  static Fault check(const void* at) { return J::look(classify<Line>(at), at).fault; }
  // Returns true if it has a run, and is no sample of a class in one.
  static bool is_run(const void* block) {
    return classify<Line>(block).kind == Kind::kRun && H::bin_of(block) == kHugeBin;
  }

  // Returns what would be usable in a block of that size and alignment, a power of two; 0: there is no such
  // block. It stays usable in blocks to come.
  static std::size_t good_size(std::size_t alignment, std::size_t size) {
    classes.settle();
    if (size > H::kMaxBytes - kGranule || alignment > H::kMaxBytes) return 0;
    if constexpr (M::kExactSizes) return size;
    if (HZ_UNLIKELY(Extensions::may_take(size))) return size;
    const Bin bin = M::bin_for(size, alignment);
    return bin != kHugeBin ? bin_size(bin) : H::bytes_for(size);
  }

  // Returns true if a program that can move the block should: it allocates another one of its size, copies,
  // and frees this one. That one lies in a fuller span, and this one's is nearer to its end. False for what
  // has no slot of a span, and after a report for what is no block. Lock: takes the thread's.
  HZ_INLINE static bool defrag_hint(const void* block) {
    if (Heap<Line>::usable_size(block) == 0) return false;
    const Block<Line> found = classify<Line>(block);
    if (found.kind != Kind::kSlot || is_large(found.bin)) return false;
    typename Threads<Line>::Entered here;
    return SpanSupply<Line>::prefer_fuller(here.thread(), found.bin, address(block) & ~(kGranule - 1));
  }

 private:
  static bool begins(const Block<Line>& found, const void* at) {
    const auto offset = static_cast<std::uint16_t>(address(at));
    switch (found.kind) {
      case Kind::kNothing: return false;
      case Kind::kExtension: return Extensions::look(at).is_start();
      case Kind::kInHeap: return F::bytes_at(at) != 0;
      case Kind::kRun: return offset == 0;
      case Kind::kSlot: return is_slot_start(found.bin, offset);
    }
    return false;
  }
  // Returns the bytes of what begins there.
  static std::size_t bytes_of(const Block<Line>& found, const void* block) {
    switch (found.kind) {
      case Kind::kNothing: return 0;
      case Kind::kExtension: return Extensions::look(block).bytes;
      case Kind::kInHeap: return F::bytes_at(block);
      case Kind::kRun: Forks<Line>::notice_process(); return H::usable_size(block);
      case Kind::kSlot: return M::bytes_of(block, found.bin);
    }
    return 0;
  }
};

}  // namespace hz
