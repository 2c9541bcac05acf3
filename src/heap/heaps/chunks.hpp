// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a first-class heap: cut from a chunk, or a freed one again, or in a run. Called by heaps.hpp with
// the heap's lock held; costs a few stores for a block from a chunk.
#pragma once

#include "heap/heaps/ways.hpp"
#include "heap/huge/huge.hpp"

namespace hz {

template <class Line>
struct Allocation;

template <class Line>
struct Release;

template <class Line>
struct HeapChunks {
  using S = State<Line>;
  using W = HeapWays<Line>;
  using H = Huge<Line>;
  using Route = typename Line::Route;
  using Source = typename Line::Source;
  using Guard = typename Line::Guard;

  // A run that the heap got from the process, if that is a sample of the heap profile: a chunk counts for the
  // call that it was needed for.
  struct Grown {
    void* run = nullptr;
    Sample sample = Sample::kNone;
  };
  static void* run_of(std::size_t size, std::size_t alignment, bool& zeroed, Grown& grown) {
    return grown.run = Allocation<Line>::huge(size, alignment, zeroed, &grown.sample);
  }
  // Without a lock.
  static void note(const Grown& grown, const void* caller) {
    if (HZ_UNLIKELY(grown.sample != Sample::kNone))
      Quotas<Line>::add(grown.sample, grown.run, kHugeBin, caller);
  }

  // With the heap's lock, as all that follows; of one frame, for small stacks.
  HZ_INLINE static void* take(HeapRow& row, std::uint32_t number, std::size_t alignment, std::size_t size,
                              bool& zeroed, Grown& grown) {
    if (HZ_UNLIKELY(row.first == nullptr) && !begin_chunks(row, number)) return nullptr;
    if (HZ_UNLIKELY(size > kChunkMost || alignment > kChunkMostAlign))
      return held(run_of(size, alignment, zeroed, grown), row, number);
    const Bin bin = W::bin_of(size);
    void* block = row.first->free_of[bin] == 0 ? nullptr : reuse(row, number, bin, alignment);
    if (HZ_LIKELY(block == nullptr)) {
      block = row.open->cut(bin_size(bin), alignment);
      zeroed = row.open->zeroed != 0;
      if (HZ_UNLIKELY(block == nullptr)) block = cut_from_new(row, number, bin, alignment, zeroed, grown);
    }
    // As of a huge block: it may still carry the mark of a free slot.
    if (Guard::kMarks && !zeroed && block != nullptr) Guard::on_alloc(block, kHeapBin);
    return block;
  }
  // Returns a run to the process, as a huge block. A run that moved, and whose old place the system did not
  // take, has no tag there, and stays out of use.
  static void release(std::uintptr_t run) {
    const Kind kind = classify<Line>(pointer(run)).kind;
    if (HZ_UNLIKELY(kind == Kind::kNothing)) return;
    if (kind == Kind::kInHeap) {
      Route::clear(S::global.route, run, kGranule);
      Route::bind(S::global.route, run, kPage, kHugeBin, H::kNobody);
    }
    Release<Line>::run(pointer(run));
  }

 private:
  static void* held(void* block, const HeapRow& row, std::uint32_t number) {
    if (block != nullptr) Source::hold(S::global.source, address(block), number, address(row.first));
    return block;
  }

  // The first one is no sample: the call that begins a heap may want a huge block, which may be one itself.
  HZ_INLINE static bool begin_chunks(HeapRow& row, std::uint32_t number) {
    bool zeroed = false;
    void* const granule = Allocation<Line>::huge(kGranule, 1, zeroed, nullptr);
    HeapChunk* const chunk = new_chunk(granule, zeroed, number, sizeof(FirstChunk));
    if (chunk == nullptr) return false;
    row.first = static_cast<FirstChunk*>(chunk);
    row.open = chunk;
    Source::hold(S::global.source, address(chunk), number | W::kOfChunk, 0);
    return true;
  }
  // Cuts a block from a new chunk. The chunk with more room stays open.
  HZ_INLINE static void* cut_from_new(HeapRow& row, std::uint32_t number, Bin bin, std::size_t alignment,
                                      bool& zeroed, Grown& grown) {
    void* const granule = run_of(kGranule, 1, zeroed, grown);
    HeapChunk* const chunk = new_chunk(granule, zeroed, number, sizeof(HeapChunk));
    if (chunk == nullptr) return nullptr;
    Source::hold(S::global.source, address(chunk), number | W::kOfChunk, address(row.first));
    zeroed = chunk->zeroed != 0;
    void* block = chunk->cut(bin_size(bin), alignment);
    if (chunk->used < row.open->used) row.open = chunk;
    return block;
  }
  HZ_INLINE static HeapChunk* new_chunk(void* granule, bool zeroed, std::uint32_t number, std::size_t notes) {
    if (granule == nullptr) return nullptr;
    if (!zeroed) clear_bytes(granule, notes);
    auto* const chunk = static_cast<HeapChunk*>(granule);
    chunk->holder.set(number);
    chunk->used = static_cast<std::uint32_t>(align_up(notes, kMinAlign));
    chunk->zeroed = zeroed ? 1 : 0;
    Route::bind(S::global.route, address(granule), kGranule, kHeapBin, H::kNobody);
    return chunk;
  }

  // A free block of the class, one of the first few that lies right. The program may have written to it after
  // its free, and its link with it: a link that leads to no free block of the class is not followed, and what
  // lay behind it is not used again.
  static constexpr unsigned kLooks = 8;
  HZ_SLOW static void* reuse(HeapRow& row, std::uint32_t number, Bin bin, std::size_t alignment) {
    std::uintptr_t* link = &row.first->free_of[bin];
    const void* from = nullptr;
    for (unsigned look = 0; look < kLooks && *link != 0; ++look) {
      void* const block = pointer(*link);
      if (HZ_UNLIKELY(!is_free(number, block, bin))) {
        *link = 0;
        Faults<Line>::note(Fault::kWriteAfterFree, from != nullptr ? from : block, bin);
        return nullptr;
      }
      if ((address(block) & (alignment - 1)) == 0) {
        HeapChunk::clear(HeapChunk::around(block)->freed, HeapChunk::unit(block));
        *link = *static_cast<std::uintptr_t*>(block);
        return block;
      }
      from = block;
      link = static_cast<std::uintptr_t*>(block);
    }
    return nullptr;
  }
  static bool is_free(std::uint32_t number, const void* at, Bin bin) {
    const unsigned offset = HeapChunk::offset(at), unit = HeapChunk::unit(at);
    if (offset % kMinAlign != 0 || !W::is_chunk(at)) return false;
    const HeapChunk& chunk = *HeapChunk::around(at);
    return chunk.holder.peek() == number && HeapChunk::bit(chunk.starts, unit) &&
           HeapChunk::bit(chunk.freed, unit) && chunk.bytes(offset) == bin_size(bin);
  }
};

}  // namespace hz
