// SPDX-License-Identifier: Apache-2.0
//
// The ways into a first-class heap: by its handle, and from an address in one of its chunks. Each ends with
// the heap's lock held, or with the answer that it has gone. Called by heaps.hpp; costs two loads while the
// thread that began the heap is alone in it, else a lock.
#pragma once

#include <cerrno>

#include "base/bytes.hpp"
#include "heap/process/fork.hpp"

namespace hz {

template <class Line>
struct HeapWays {
  using S = State<Line>;
  using Source = typename Line::Source;
  using Telling = typename Faults<Line>::Telling;

  static HeapTable& table() { return S::shelves.heaps; }
  static bool is_chunk(const void* at) { return classify<Line>(at).kind == Kind::kInHeap; }
  // Returns the heap of a live block; 0: the process's.
  static std::uint32_t holder_of(const void* block) {
    const Kind kind = classify<Line>(block).kind;
    if (kind == Kind::kInHeap) return HeapChunk::around(block)->holder.peek();
    return kind == Kind::kRun ? Source::holder(S::global.source, address(block)) : 0;
  }
  // Returns whose chunk begins at an address, as the source says: nothing is read of the chunk, which another
  // thread may free meanwhile. 0: the process's; kNoChunk: there is none.
  static constexpr std::uint32_t kNoChunk = ~0U - 1;
  static std::uint32_t holder_of_chunk(std::uintptr_t at) {
    const unsigned holder = is_chunk(pointer(at)) ? Source::holder(S::global.source, at) : 0;
    return (holder & kOfChunk) == 0 ? kNoChunk : holder & ~kOfChunk;
  }
  // A bit of a chunk's holder in the source. It tells a chunk from a huge block, also if another thread has
  // freed the run since, so that its tag says nothing.
  static constexpr unsigned kOfChunk = 1U << 31;
  // Of a block, or of a size up to kChunkMost. A spare class may be dealt out between two looks at a block's
  // own size: it stays that of one class.
  static Bin bin_of(std::size_t size) { return classes.of((size == 0 ? 0 : size - 1) / kMinAlign); }

  // Holds a heap alone. A thread that forks holds all of them.
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
      os::Guarded::expect_order(os::Rank::kHeap);
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
};

}  // namespace hz
