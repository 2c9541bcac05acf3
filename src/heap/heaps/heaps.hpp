// SPDX-License-Identifier: Apache-2.0
//
// First-class heaps: what a program allocates in one ends with it, in a step for each of its chunks and huge
// blocks, not for each block. Called by the direct API's functions for heaps, and by the slow paths of
// heap.hpp for a block that lies in one.
//
//   chunk        a huge block of one granule, for all books but the route's: its tag is kHeapBin, in which
//                nothing has room, so that every free, realloc and question about a block of it comes here
//   small block  cut from a chunk, behind the last one, or a free one of the same class again
//   huge block   as those of the process
//   ring         all of these, whose holder is the heap: the source keeps it
//
// A lock for each heap, which the thread that began it does without as long as no other comes (HeapRow); it
// stands before those of threads, so a fork takes it first.
#pragma once

#include <cerrno>
#include <cstring>

#include "base/bytes.hpp"
#include "heap/heaps/chunks.hpp"
#include "heap/of_line.hpp"

namespace hz {

template <class Line>
struct Heaps {
  using S = State<Line>;
  using W = HeapWays<Line>;
  using C = HeapChunks<Line>;
  using Entered = typename W::Entered;
  using Around = typename W::Around;
  using Inside = typename W::Inside;
  using Grown = typename C::Grown;
  using Source = typename Line::Source;
  using Guard = typename Line::Guard;
  using Telling = typename Faults<Line>::Telling;
  using Hold = typename S::Hold;

  // --- what a program calls

  // 0 and an error if there can be none.
  static HeapHandle begin() {
    if (!Start<Line>::open()) return none();
    Forks<Line>::notice_process();
    const Telling telling;
    HeapHandle handle = 0;
    {
      const Hold hold(W::table().lock);
      handle = W::table().begin(&S::tls());
    }
    if (handle == 0) return none();
    HeapRow& row = *W::table().find(HeapTable::number(handle));
    const Inside inside(row);
    row.handle.set(handle);
    if (W::table().may_bias()) {
      row.bias(&S::tls());
      S::tls().biased = &row;
    }
    return handle;
  }

  HZ_INLINE static void* malloc(HeapHandle handle, std::size_t size) {
    void* block = at_hand(handle, size);
    return HZ_LIKELY(block != nullptr) ? block : allocate(handle, 1, size);
  }
  // `alignment` is a power of two.
  HZ_SLOW static void* allocate(HeapHandle handle, std::size_t alignment, std::size_t size) {
    bool zeroed = false;
    return allocate(handle, alignment, size, zeroed, __builtin_return_address(0));
  }
  HZ_SLOW static void* zeroed(HeapHandle handle, std::size_t alignment, std::size_t size) {
    bool zeroed = false;
    void* block = allocate(handle, alignment, size, zeroed, __builtin_return_address(0));
    return block == nullptr || zeroed ? block : std::memset(block, 0, size);
  }
  // A block of another heap, or of none, is as foreign to this one as that of another malloc.
  static void* realloc(HeapHandle handle, void* block, std::size_t size) {
    if (block == nullptr) return allocate(handle, 1, size);
    if (const Entered here(handle); !here.found()) return nullptr;
    if (Heap<Line>::usable_size(block) == 0 && !Heap<Line>::is_empty(block))
      return nullptr;  // it was reported
    if (W::holder_of(block) == HeapTable::number(handle)) return Heap<Line>::realloc(block, size);
    Guard::report(Fault::kForeign, block, 0, Line::kName);
    return nullptr;
  }

  // The heap and all of its blocks.
  static void destroy(HeapHandle handle) {
    end(handle, [](HeldRun run) { C::release(run.at); });
  }
  // The heap; its blocks are the process's from here on. A chunk goes with its last one.
  static void remove(HeapHandle handle) {
    end(handle, [](HeldRun run) {
      if ((run.holder & W::kOfChunk) == 0) return;
      HeapChunk& chunk = *HeapChunk::around(pointer(run.at));
      const Hold nobodys(W::table().find(0)->lock);
      chunk.live = chunk.count();
      chunk.holder.set(0);
      Source::hold(S::global.source, run.at, W::kOfChunk, 0);
      if (chunk.live == 0) C::release(run.at);
    });
  }

  // --- of any block

  // Allocates in the heap of `block`, for the thread that has it. False: its heap has been deleted meanwhile,
  // and the block is the process's. A heap is asked again under its lock: its row may have the next one.
  static bool allocate_beside(const void* block, std::size_t alignment, std::size_t size, void*& beside) {
    const Telling telling;
    const std::uint32_t number = W::holder_of(block);
    if (number == 0) return false;
    HeapRow& row = *W::table().find(number);
    Grown grown;
    {
      const Inside inside(row);
      if (HZ_UNLIKELY(W::holder_of(block) != number)) return false;
      bool zeroed = false;
      beside = C::take(row, number, alignment, size, zeroed, grown);
    }
    C::note(grown, __builtin_return_address(0));
    return true;
  }

  // --- of an address whose tag is kHeapBin

  static void free(void* block) {
    const Around here(block);
    const Finding found = here.look();
    if (HZ_UNLIKELY(found.fault != Fault::kNone))
      return Faults<Line>::note(found.fault, block, found.bin, Seen::kNow);
    HeapChunk& chunk = here.chunk();
    HeapChunk::set(chunk.freed, HeapChunk::unit(block));
    if (HZ_UNLIKELY(chunk.holder.peek() == 0)) {
      if (--chunk.live == 0) C::release(address(&chunk));
      return;
    }
    std::uintptr_t& list = here.row().first->free_of[found.bin];
    *static_cast<std::uintptr_t*>(block) = list;
    list = address(block);
  }
  static Finding look(const void* block) { return Around(block).look(); }
  // Of a block, live or free; 0 where none begins.
  static std::size_t bytes_at(const void* at) { return Around(at).bytes(); }
  // Visits the live blocks of the chunk at an address, if it is a chunk of the heap of that number. Returns
  // the visitor's first answer that is not 0, or 0.
  static constexpr std::uint32_t kAnyHeap = ~0U;
  HZ_SLOW static int walk_chunk(std::uintptr_t at, std::uint32_t number,
                                int (*visit)(void* block, std::size_t bytes, void* argument),
                                void* argument) {
    HeapChunk notes = {};
    if (!copy_notes(at, number, notes)) return 0;
    constexpr unsigned kNone = HeapChunk::kUnits;
    for (unsigned unit = notes.next_start(0); unit != kNone;) {
      const unsigned next = notes.next_start(unit + 1);
      const std::size_t end = next == kNone ? notes.used : std::size_t{next} << HeapChunk::kUnitShift;
      const std::size_t begin = std::size_t{unit} << HeapChunk::kUnitShift;
      if (!HeapChunk::bit(notes.freed, unit))
        if (const int answer = visit(pointer(at + begin), end - begin, argument)) return answer;
      unit = next;
    }
    return 0;
  }
  // Returns true if the handle has a heap. Errors: reports E07 otherwise.
  static bool is_there(HeapHandle handle) { return Entered(handle).found(); }
  // Whether a block of that size may lie there.
  static bool fits(const void* block, std::size_t size, bool after_realloc) {
    const std::size_t usable = bytes_at(block), least = size == 0 ? 1 : size;
    const bool of_class =
        least <= kChunkMost && (bin_size(W::bin_of(least)) == usable || bin_size(scan_bin(least)) == usable);
    return least <= usable && (of_class || (after_realloc && least >= usable / 2));
  }

 private:
  HZ_COLD static HeapHandle none() {
    errno = ENOMEM;
    return 0;
  }

  // Of the heap that this thread began last, while its lock is biased: a block that is cut from a chunk with
  // room. nullptr: allocate has to go on. The row is not touched before it is known to be that of the handle:
  // another thread may have ended the heap, and one more may have its row. No lock is taken, so there is no
  // check of the process: the only thread of a child was not in what it finds.
  HZ_INLINE static void* at_hand(HeapHandle handle, std::size_t size) {
    HeapRow* const row = S::tls().biased;
    const std::size_t last = size - 1;  // of size 0: too large
    if (HZ_UNLIKELY(last >= kChunkMost || row == nullptr || row->handle.peek() != handle)) return nullptr;
    if (HZ_UNLIKELY(!row->enter_biased(&S::tls()))) return nullptr;
    const Bin bin = classes.of(last / kMinAlign);
    void* block = nullptr;
    if (HZ_LIKELY(row->first != nullptr && row->first->free_of[bin] == 0)) {
      block = row->open->cut(bin_size(bin), 1);
      if (Guard::kMarks && HZ_LIKELY(block != nullptr)) Guard::on_alloc(block, kHeapBin);
    }
    row->leave_biased();
    return block;
  }
  // Returns false if there is no chunk of that heap, or not any more. A chunk goes with its heap's lock held.
  static bool copy_notes(std::uintptr_t at, std::uint32_t number, HeapChunk& notes) {
    const Telling telling;
    Forks<Line>::notice_process();
    for (;;) {
      const std::uint32_t holder = W::holder_of_chunk(at);
      if (holder == W::kNoChunk || (number != kAnyHeap && holder != number)) return false;
      const Inside inside(*W::table().find(holder));
      if (W::holder_of_chunk(at) != holder) continue;
      copy_bytes(&notes, HeapChunk::around(pointer(at)), sizeof notes);
      return true;
    }
  }

  HZ_INLINE static void* allocate(HeapHandle handle, std::size_t alignment, std::size_t size, bool& zeroed,
                                  const void* caller) {
    Grown grown;
    void* block = nullptr;
    {
      const Entered here(handle);
      if (HZ_UNLIKELY(!here.found())) return nullptr;
      block = C::take(here.row(), HeapTable::number(handle), alignment, size, zeroed, grown);
    }
    C::note(grown, caller);
    return block;
  }

  // One step for each run of the heap. Other threads may free and move huge blocks of it meanwhile, so the
  // way goes by the first chunk alone, which stays.
  template <class Step>
  static void end(HeapHandle handle, Step step) {
    const Telling telling;
    {
      const Entered here(handle);
      if (!here.found()) return;
      HeapRow& row = here.row();
      row.handle.set(0);
      const std::uintptr_t first = address(row.first);
      row.first = nullptr;
      row.open = nullptr;
      // Before what is there goes: a signal handler may fork, and its child looks (HeapTable::make_whole).
      std::atomic_signal_fence(std::memory_order_release);
      if (first != 0) {
        for (HeldRun run; (run = Source::drop_next(S::global.source, first)).at != 0;) step(run);
        Source::drop(S::global.source, first);
        step(HeldRun{first, W::kOfChunk});
      }
      row.biased.store(nullptr, std::memory_order_relaxed);
    }
    const Hold hold(W::table().lock);
    W::table().end(HeapTable::number(handle));
  }
};

}  // namespace hz
