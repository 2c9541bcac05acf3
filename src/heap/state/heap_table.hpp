// SPDX-License-Identifier: Apache-2.0
//
// First-class heaps, as the process knows them: a table of rows that never move, what a heap's handle says,
// and the plan of a chunk, the granule from which its small blocks are cut. Plain data under the locks of the
// rows; used by heaps.hpp, and by forks.
//
//   handle   generation << kNumberBits | number of the row. The generation goes on with each heap of a row,
//            so a handle of a heap that has ended differs from every other
//   chunk    | notes | blocks, one after the other ... | never handed out |       one granule
//   notes    a bit for each 16 bytes: something begins there; and one: what begins there is free
//
// Row 0 is of blocks whose heap was deleted, and outlived it.
#pragma once

#include "base/bytes.hpp"
#include "base/plain_word.hpp"
#include "base/size_classes.hpp"
#include "heap/of_line.hpp"
#include "os/growing_table.hpp"
#include "os/lock.hpp"

namespace hz {

struct HeapChunk {
  static constexpr unsigned kUnitShift = log2_floor(kMinAlign), kUnits = kGranule >> kUnitShift;

  OwnerWord<std::uint32_t> holder;  // row of its heap
  std::uint32_t used;               // offset: from there on nothing was ever handed out
  std::uint32_t live;               // blocks; counted in row 0 alone
  std::uint32_t zeroed;             // what lies behind `used` reads as zero
  std::uint64_t starts[kUnits / 64], freed[kUnits / 64];

  static HeapChunk* around(const void* at) {
    return static_cast<HeapChunk*>(pointer(address(at) & ~(kGranule - 1)));
  }
  static unsigned offset(const void* at) { return static_cast<std::uint16_t>(address(at)); }
  static unsigned unit(const void* at) { return offset(at) >> kUnitShift; }
  static bool bit(const std::uint64_t* bits, unsigned unit) {
    return (bits[unit / 64] >> unit % 64 & 1) != 0;
  }
  static void set(std::uint64_t* bits, unsigned unit) { bits[unit / 64] |= std::uint64_t{1} << unit % 64; }
  static void clear(std::uint64_t* bits, unsigned unit) {
    bits[unit / 64] &= ~(std::uint64_t{1} << unit % 64);
  }

  // A block of `bytes` behind all others; nullptr if there is no room. A gap before it counts as a free one,
  // so the one before keeps its length.
  HZ_INLINE void* cut(std::size_t bytes, std::size_t alignment) {
    const std::size_t at = align_up(used, alignment);
    if (HZ_UNLIKELY(at + bytes > kGranule)) return nullptr;
    if (HZ_UNLIKELY(at != used)) {
      set(starts, used >> kUnitShift);
      set(freed, used >> kUnitShift);
    }
    set(starts, static_cast<unsigned>(at >> kUnitShift));
    used = static_cast<std::uint32_t>(at + bytes);
    return pointer(address(this) + at);
  }
  // Of what begins there.
  std::size_t bytes(unsigned begin) const {
    unsigned unit = (begin >> kUnitShift) + 1;
    const unsigned end = used >> kUnitShift;
    while (unit < end) {
      const std::uint64_t rest = starts[unit / 64] >> unit % 64;
      if (rest != 0) return ((unit + static_cast<unsigned>(__builtin_ctzll(rest))) << kUnitShift) - begin;
      unit = (unit / 64 + 1) * 64;
    }
    return used - begin;
  }
  // Where that begins which the byte at `at` is part of; 0: nothing was ever handed out there.
  unsigned begin_of(unsigned at) const {
    if (at >= used) return 0;
    unsigned unit = at >> kUnitShift;
    while (unit != 0 && !bit(starts, unit)) --unit;
    return unit << kUnitShift;
  }
  // The first unit from there on at which something begins; kUnits: none.
  unsigned next_start(unsigned unit) const {
    for (; unit < kUnits; unit = (unit / 64 + 1) * 64) {
      const std::uint64_t rest = starts[unit / 64] >> unit % 64;
      if (rest != 0) return unit + static_cast<unsigned>(__builtin_ctzll(rest));
    }
    return kUnits;
  }
  unsigned count() const {
    unsigned all = 0;
    for (unsigned i = 0; i < kUnits / 64; ++i)
      all += static_cast<unsigned>(__builtin_popcountll(starts[i] & ~freed[i]));
    return all;
  }
};

// Three of the largest blocks but one fit into a chunk, and two of the largest.
inline constexpr Bin kLastChunkBin = kLastFineBin + 3;
inline constexpr std::size_t kChunkMost = size_of_bin(kLastChunkBin), kChunkMostAlign = kGranule / 2;

// The first of a heap's chunks has its lists of free blocks. Each begins with the address of the next.
struct FirstChunk : HeapChunk {
  std::uintptr_t free_of[kLastChunkBin + 1];
};
static_assert(align_up(sizeof(FirstChunk), kChunkMostAlign) + kChunkMost <= kGranule);

struct HeapRow {
  os::LockOf<os::Rank::kHeap> lock;  // guards what follows, and the heap's chunks; but see biased
  std::uint32_t generation;          // of the heap that has or had the row
  std::uint32_t next_free;           // of rows without a heap; under the table's lock
  OwnerWord<bool> inside;            // the thread of the bias is in
  // A biased lock: the thread that began the heap comes in without it, by this word, for a locked instruction
  // costs as much as the allocation itself. Another thread that comes with the lock revokes the bias, for
  // good. Null: there is none.
  std::atomic<const void*> biased;
  // The one thread that writes `inside`: the first that had the bias, whatever heaps the row has had since.
  // Another one could be late for a heap that has ended, and write the word of the next.
  const void* owner;
  OwnerWord<HeapHandle> handle;  // 0: there is no heap
  FirstChunk* first;             // null: it never had a block
  HeapChunk* open;               // the chunk from which blocks are cut

  // The heap begins. With the lock.
  void bias(const void* thread) {
    if (owner == nullptr) owner = thread;
    if (owner == thread) biased.store(thread, std::memory_order_relaxed);
  }
  bool may_bias(const void* thread) const { return owner == nullptr || owner == thread; }
  // Asked by that thread of itself, in a signal handler.
  bool is_in(const void* thread) const { return owner == thread && inside.peek(); }

  HZ_INLINE bool enter_biased(const void* thread) {
    if (HZ_UNLIKELY(biased.load(std::memory_order_relaxed) != thread)) return false;
    inside.put(true);
    // Before the second read; the revoking thread passes the barrier for the machine.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (HZ_LIKELY(biased.load(std::memory_order_relaxed) == thread)) return true;
    leave_biased();
    return false;
  }
  // Release: a thread that finds the word down finds the heap as we left it.
  HZ_INLINE void leave_biased() { inside.set_last(false); }

  HZ_INLINE void enter() {
    lock.lock();
    if (HZ_LIKELY(biased.load(std::memory_order_relaxed) == nullptr)) return;
    biased.store(nullptr, std::memory_order_relaxed);
    all_have_seen();
    wait_for_biased();
  }
  // After this the thread that had the bias has either been seen inside, or sees that it is gone.
  HZ_SLOW static void all_have_seen() {
    if (os::barrier_on_all_threads()) return;
    // There was one when the first heap began, and the system refuses it now. What a core has stored is seen
    // by others after a moment.
    const std::uint64_t began = os::milliseconds();
    while (os::milliseconds() - began < kMoment) os::give_way();
  }
  void wait_for_biased() const {
    while (inside.peek_first()) os::give_way();
  }
  // The same for that long; false: it is inside, and has the bias again.
  bool has_left_within(unsigned most_milliseconds) {
    const std::uint64_t began = os::milliseconds();
    while (inside.peek_first()) {
      if (os::milliseconds() - began >= most_milliseconds)
        return biased.store(owner, std::memory_order_relaxed), false;
      os::give_way();
    }
    return true;
  }
  static constexpr std::uint64_t kMoment = 2;  // milliseconds
};

class HeapTable {
 public:
  // 48 bits in all: a fault is noted in so many.
  static constexpr unsigned kNumberBits = 20, kGenerationBits = 28;
  static constexpr std::uint32_t kMost = 1U << kNumberBits;

  static constexpr std::uint32_t number(HeapHandle handle) {
    return static_cast<std::uint32_t>(handle & (kMost - 1));
  }

  // The row of that number, nullptr if no heap ever had it; row 0 is always there.
  HeapRow* find(std::uint32_t number) {
    // Acquire: pairs with begin().
    return number <= last_.load(std::memory_order_acquire) ? rows_.find(number) : nullptr;
  }

  // A heap, in a row that may be biased to the thread if there is one among the first few; 0 if there is no
  // memory, or no row. With `lock`.
  HeapHandle begin(const void* thread) {
    std::uint32_t& link = free_for(thread);
    const std::uint32_t number = link != 0 ? link : last_.load(std::memory_order_relaxed) + 1;
    if (number == kMost) return 0;
    HeapRow* const row = rows_.reach(number);
    if (row == nullptr) return 0;
    if (link != 0) {
      link = row->next_free;
    } else {
      // Release: pairs with find().
      last_.store(number, std::memory_order_release);
    }
    row->generation = row->generation % ((1U << kGenerationBits) - 1) + 1;
    return HeapHandle{row->generation} << kNumberBits | number;
  }
  // Its row is free. With `lock`.
  void end(std::uint32_t number) {
    rows_.find(number)->next_free = free_;
    free_ = number;
  }

  // Whether locks may be biased: there is a barrier to revoke that by.
  static constexpr bool kBiased = true;
  bool may_bias() {
    std::uint8_t known = may_bias_.load(std::memory_order_relaxed);
    if (HZ_UNLIKELY(known == 0)) {
      known = kBiased && os::barrier_on_all_threads() ? 1 : 2;
      may_bias_.store(known, std::memory_order_relaxed);
    }
    return known == 1;
  }

  // For a fork: all locks, or none, if one of them is not to be had in that time. Row 0 last: a thread that
  // deletes a heap takes its lock with the heap's.
  bool lock_all(const void* thread, unsigned most_milliseconds) {
    if (!lock.had_within(most_milliseconds)) return false;
    const std::uint32_t last = last_.load(std::memory_order_relaxed);
    bool revoked = false, had = true;
    std::uint32_t held = last + 1;  // and all rows behind it
    while (held != 1 && rows_.find(held - 1)->lock.had_within(most_milliseconds)) {
      HeapRow& row = *rows_.find(--held);
      const void* const biased = row.biased.load(std::memory_order_relaxed);
      if (biased == nullptr || biased == thread) continue;
      row.biased.store(nullptr, std::memory_order_relaxed);
      revoked = true;
    }
    if (revoked) HeapRow::all_have_seen();
    for (std::uint32_t i = last; revoked && i >= held; --i)
      had = rows_.find(i)->has_left_within(had ? most_milliseconds : 0) && had;
    if (had && held == 1 && (last == 0 || rows_.find(0)->lock.had_within(most_milliseconds))) return true;
    unlock_from(held, last);
    return false;
  }
  void unlock_all() {
    const std::uint32_t last = last_.load(std::memory_order_relaxed);
    if (last != 0) rows_.find(0)->lock.unlock();
    unlock_from(1, last);
  }
  // For a child for which no fork hook ran. A thread in a heap may have been anywhere: the heap loses its
  // blocks to reuse, and the chunk that it cut from.
  void make_whole() {
    lock.reset();
    for (std::uint32_t i = 0; i <= last_.load(std::memory_order_relaxed); ++i) {
      HeapRow& row = *rows_.find(i);
      const bool locked = row.lock.reset(), entered = row.inside.peek();
      row.biased.store(nullptr, std::memory_order_relaxed);
      row.inside.set(false);
      if (!(locked || entered) || row.first == nullptr) continue;
      clear_bytes(row.first->free_of, sizeof row.first->free_of);
      row.open = row.first;
    }
  }

  // Beyond the table itself.
  std::size_t chunk_bytes() const { return rows_.chunk_bytes(); }

  os::LockOf<os::Rank::kHeapTable> lock;  // guards which rows are free

 private:
  // The link to a free row that may be biased to the thread, or to the first one.
  std::uint32_t& free_for(const void* thread) {
    constexpr unsigned kLooks = 16;
    std::uint32_t* link = &free_;
    for (unsigned looks = 0; looks < kLooks && *link != 0; ++looks) {
      HeapRow& row = *rows_.find(*link);
      if (row.may_bias(thread)) return *link;
      link = &row.next_free;
    }
    return free_;
  }
  void unlock_from(std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t i = last; i >= first; --i) rows_.find(i)->lock.unlock();
    lock.unlock();
  }

  os::GrowingTable<HeapRow, kMost> rows_;
  std::atomic<std::uint32_t> last_{0};  // the highest that a heap ever had
  std::uint32_t free_ = 0;
  std::atomic<std::uint8_t> may_bias_{0};  // 0: not tried yet
};

}  // namespace hz
