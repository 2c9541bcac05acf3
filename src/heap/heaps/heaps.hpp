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
#include "heap/huge/huge.hpp"
#include "heap/of_line.hpp"
#include "heap/process/fork.hpp"

namespace hz {

// What is wrong with an address, and of which class it is.
struct Finding {
  Fault fault;
  Bin bin;  // of the slot that the address lies in; 0 if there is none
};

template <class Line>
struct Allocation;

template <class Line>
struct Release;

template <class Line>
struct Sampled;

template <class Line>
struct Heaps {
  using S = State<Line>;
  using H = Huge<Line>;
  using Route = typename Line::Route;
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
      const Hold hold(table().lock);
      handle = table().begin(&S::tls());
    }
    if (handle == 0) return none();
    HeapRow& row = *table().find(HeapTable::number(handle));
    const Inside inside(row);
    row.handle.set(handle);
    if (table().may_bias()) {
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
    if (holder_of(block) == HeapTable::number(handle)) return Heap<Line>::realloc(block, size);
    Guard::report(Fault::kForeign, block, 0, Line::kName);
    return nullptr;
  }

  // The heap and all of its blocks.
  static void destroy(HeapHandle handle) {
    end(handle, [](HeldRun run) { release(run.at); });
  }
  // The heap; its blocks are the process's from here on. A chunk goes with its last one.
  static void remove(HeapHandle handle) {
    end(handle, [](HeldRun run) {
      if ((run.holder & kOfChunk) == 0) return;
      HeapChunk& chunk = *HeapChunk::around(pointer(run.at));
      const Hold nobodys(table().find(0)->lock);
      chunk.live = chunk.count();
      chunk.holder.set(0);
      Source::hold(S::global.source, run.at, kOfChunk, 0);
      if (chunk.live == 0) release(run.at);
    });
  }

  // --- of any block

  // Whose a live block is; 0: the process's.
  static std::uint32_t holder_of(const void* block) {
    const Kind kind = classify<Line>(block).kind;
    if (kind == Kind::kInHeap) return HeapChunk::around(block)->holder.peek();
    return kind == Kind::kRun ? Source::holder(S::global.source, address(block)) : 0;
  }
  // Allocates in the heap of `block`, for the thread that has it. False: its heap has been deleted meanwhile,
  // and the block is the process's. A heap is asked again under its lock: its row may have the next one.
  static bool allocate_beside(const void* block, std::size_t alignment, std::size_t size, void*& beside) {
    const Telling telling;
    const std::uint32_t number = holder_of(block);
    if (number == 0) return false;
    HeapRow& row = *table().find(number);
    Grown grown;
    {
      const Inside inside(row);
      if (HZ_UNLIKELY(holder_of(block) != number)) return false;
      bool zeroed = false;
      beside = take(row, number, alignment, size, zeroed, grown);
    }
    note(grown, __builtin_return_address(0));
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
      if (--chunk.live == 0) release(address(&chunk));
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
  // Returns whose chunk begins at an address, as the source says: nothing is read of the chunk, which another
  // thread may free meanwhile. 0: the process's; kNoChunk: there is none.
  static constexpr std::uint32_t kNoChunk = ~0U - 1;
  static std::uint32_t holder_of_chunk(std::uintptr_t at) {
    const unsigned holder = is_chunk(pointer(at)) ? Source::holder(S::global.source, at) : 0;
    return (holder & kOfChunk) == 0 ? kNoChunk : holder & ~kOfChunk;
  }
  // Returns true if the handle has a heap. Errors: reports E07 otherwise.
  static bool is_there(HeapHandle handle) { return Entered(handle).found(); }
  // Whether a block of that size may lie there.
  static bool fits(const void* block, std::size_t size, bool after_realloc) {
    const std::size_t usable = bytes_at(block), least = size == 0 ? 1 : size;
    const bool of_class =
        least <= kChunkMost && (bin_size(bin_of(least)) == usable || bin_size(scan_bin(least)) == usable);
    return least <= usable && (of_class || (after_realloc && least >= usable / 2));
  }

 private:
  // A bit of a chunk's holder in the source. It tells a chunk from a huge block, also if another thread has
  // freed the run since, so that its tag says nothing.
  static constexpr unsigned kOfChunk = 1U << 31;

  static HeapTable& table() { return S::shelves.heaps; }
  static bool is_chunk(const void* at) { return classify<Line>(at).kind == Kind::kInHeap; }

  HZ_COLD static HeapHandle none() {
    errno = ENOMEM;
    return 0;
  }

  // In a heap, with nobody else. A thread that forks is in all of them.
  class Inside {
   public:
    explicit Inside(HeapRow& row) : row_(row), how_(enter(row)) {}
    ~Inside() { leave(row_, how_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    enum class How : std::uint8_t { kLocked, kBiased, kForking };
    HZ_INLINE static How enter(HeapRow& row) {
      if (HZ_LIKELY(row.enter_biased(&S::tls()))) return How::kBiased;
      if (HZ_UNLIKELY(S::tls().forking)) return How::kForking;
      row.enter();
      return How::kLocked;
    }
    HZ_INLINE static void leave(HeapRow& row, How how) {
      if (HZ_LIKELY(how == How::kBiased)) {
        row.leave_biased();
      } else if (how == How::kLocked) {
        row.lock.unlock();
      }
    }

   private:
    HeapRow& row_;
    const How how_;
  };

  // Of the heap that this thread began last, while its lock is biased: a block that is cut from a chunk with
  // room. nullptr: allocate has to go on. The row is not touched before it is known to be that of the handle:
  // another thread may have ended the heap, and one more may have its row. No lock is taken, so nobody asks
  // which process this is: what a child finds its only thread was not in.
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
  // Of a block, or of a size up to kChunkMost. A spare class may be dealt out between two looks at a block's
  // own size: it stays that of one class.
  static Bin bin_of(std::size_t size) { return classes.of((size == 0 ? 0 : size - 1) / kMinAlign); }

  // The heap of a handle, locked; or none, which is reported when no lock is held.
  class Entered {
   public:
    explicit Entered(HeapHandle handle)
        : row_(row_of(handle)), inside_(*row_), found_(row_->handle.peek() == handle) {
      if (HZ_UNLIKELY(handle == 0 || !found_)) refuse(handle);
    }
    bool found() const { return found_; }
    HeapRow& row() const { return *row_; }

   private:
    static HeapRow* row_of(HeapHandle handle) {
      Forks<Line>::notice_process();
      HeapRow* const row = table().find(HeapTable::number(handle));
      return HZ_LIKELY(row != nullptr) ? row : table().find(0);
    }
    HZ_COLD void refuse(HeapHandle handle) {
      found_ = false;
      errno = EINVAL;
      Faults<Line>::note(Fault::kNoHeap, pointer(handle & ((std::uint64_t{1} << 48) - 1)), 0, Seen::kNow);
    }
    const Telling telling_;
    HeapRow* const row_;
    const Inside inside_;
    bool found_;
  };

  // The chunk around an address, its heap locked; or no chunk, if it has gone meanwhile.
  class Around {
   public:
    explicit Around(const void* at) : at_(at) {
      Forks<Line>::notice_process();
      for (;;) {
        row_ = row_now();
        how_ = Inside::enter(*row_);
        is_chunk_ = is_chunk(at_);
        if (HZ_LIKELY(!is_chunk_ || row_now() == row_)) return;
        Inside::leave(*row_, how_);  // its heap was deleted meanwhile
      }
    }
    ~Around() { Inside::leave(*row_, how_); }
    Around(const Around&) = delete;
    Around& operator=(const Around&) = delete;
    HeapChunk& chunk() const { return *HeapChunk::around(at_); }
    HeapRow& row() const { return *row_; }

    Finding look() const {
      const unsigned offset = HeapChunk::offset(at_);
      const unsigned begin = is_chunk_ ? chunk().begin_of(offset) : 0;
      if (begin == 0) return {Fault::kNotAllocated, 0};
      const Bin bin = bin_of(chunk().bytes(begin));
      if (begin != offset) return {Fault::kInterior, bin};
      return {
          HeapChunk::bit(chunk().freed, begin >> HeapChunk::kUnitShift) ? Fault::kDoubleFree : Fault::kNone,
          bin};
    }
    std::size_t bytes() const {
      const unsigned offset = HeapChunk::offset(at_);
      return is_chunk_ && offset != 0 && chunk().begin_of(offset) == offset ? chunk().bytes(offset) : 0;
    }

   private:
    HeapRow* row_now() const {
      HeapRow* const row = table().find(chunk().holder.peek());
      return HZ_LIKELY(row != nullptr) ? row : table().find(0);
    }
    const Telling telling_;
    const void* const at_;
    HeapRow* row_ = nullptr;
    typename Inside::How how_ = Inside::How::kLocked;
    bool is_chunk_ = false;
  };

  // Returns false if there is no chunk of that heap, or not any more. A chunk goes with its heap's lock held.
  static bool copy_notes(std::uintptr_t at, std::uint32_t number, HeapChunk& notes) {
    const Telling telling;
    Forks<Line>::notice_process();
    for (;;) {
      const std::uint32_t holder = holder_of_chunk(at);
      if (holder == kNoChunk || (number != kAnyHeap && holder != number)) return false;
      const Inside inside(*table().find(holder));
      if (holder_of_chunk(at) != holder) continue;
      copy_bytes(&notes, HeapChunk::around(pointer(at)), sizeof notes);
      return true;
    }
  }

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
    if (HZ_UNLIKELY(grown.sample != Sample::kNone)) Sampled<Line>::add(grown.run, kHugeBin, caller);
  }

  HZ_INLINE static void* allocate(HeapHandle handle, std::size_t alignment, std::size_t size, bool& zeroed,
                                  const void* caller) {
    Grown grown;
    void* block = nullptr;
    {
      const Entered here(handle);
      if (HZ_UNLIKELY(!here.found())) return nullptr;
      block = take(here.row(), HeapTable::number(handle), alignment, size, zeroed, grown);
    }
    note(grown, caller);
    return block;
  }

  // With the heap's lock, as all that follows; of one frame, for small stacks.
  HZ_INLINE static void* take(HeapRow& row, std::uint32_t number, std::size_t alignment, std::size_t size,
                              bool& zeroed, Grown& grown) {
    if (HZ_UNLIKELY(row.first == nullptr) && !begin_chunks(row, number)) return nullptr;
    if (HZ_UNLIKELY(size > kChunkMost || alignment > kChunkMostAlign))
      return held(run_of(size, alignment, zeroed, grown), row, number);
    const Bin bin = bin_of(size);
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
    Source::hold(S::global.source, address(chunk), number | kOfChunk, 0);
    return true;
  }
  // Of two chunks that with more room stays open.
  HZ_INLINE static void* cut_from_new(HeapRow& row, std::uint32_t number, Bin bin, std::size_t alignment,
                                      bool& zeroed, Grown& grown) {
    void* const granule = run_of(kGranule, 1, zeroed, grown);
    HeapChunk* const chunk = new_chunk(granule, zeroed, number, sizeof(HeapChunk));
    if (chunk == nullptr) return nullptr;
    Source::hold(S::global.source, address(chunk), number | kOfChunk, address(row.first));
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
    if (offset % kMinAlign != 0 || !is_chunk(at)) return false;
    const HeapChunk& chunk = *HeapChunk::around(at);
    return chunk.holder.peek() == number && HeapChunk::bit(chunk.starts, unit) &&
           HeapChunk::bit(chunk.freed, unit) && chunk.bytes(offset) == bin_size(bin);
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
        step(HeldRun{first, kOfChunk});
      }
      row.biased.store(nullptr, std::memory_order_relaxed);
    }
    const Hold hold(table().lock);
    table().end(HeapTable::number(handle));
  }
  // To the process, as a huge block. One that moved, and whose old place the system did not take, has no tag
  // there: nobody gets that.
  static void release(std::uintptr_t run) {
    const Kind kind = classify<Line>(pointer(run)).kind;
    if (HZ_UNLIKELY(kind == Kind::kNothing)) return;
    if (kind == Kind::kInHeap) {
      Route::clear(S::global.route, run, kGranule);
      Route::bind(S::global.route, run, kPage, kHugeBin, H::kNobody);
    }
    Release<Line>::run(pointer(run));
  }
};

}  // namespace hz
