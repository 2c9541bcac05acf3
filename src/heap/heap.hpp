// SPDX-License-Identifier: Apache-2.0
//
// The heap of a line. The upper half is the hot path: malloc and free touch this thread's state and one route word, and
// end in a tail call where they cannot go on. The lower half are the slow paths, one lock around one crossing of the
// boundary. Called by src/export alone.
#pragma once

#include <cerrno>
#include <cstring>

#include "heap/huge.hpp"
#include "heap/judge.hpp"
#include "heap/purger.hpp"

namespace hz {

template <class Line>
struct Heap {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using B = Boundary<Line>;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Guard = typename Line::Guard;
  using Remote = typename Line::Remote;
  using Observe = typename Line::Observe;
  using Source = typename Line::Source;
  using H = Huge<Line>;
  using J = Judge<Line>;
  using Entered = typename Threads<Line>::Entered;
  using Tag = typename Route::Tag;

  static constexpr std::size_t kMaxAlignment = kGiB;

  // --- hot

  HZ_INLINE static void* malloc(std::size_t size) {
    const std::size_t last = size - 1;  // of size 0: out of the table
    if (HZ_UNLIKELY(last >= kTableMax)) return malloc_above_table(size);
    const Bin bin = kClasses.bin_of[last / kMinAlign];
    void* slot = Front::pop(S::fast().front, bin);
    if (HZ_UNLIKELY(slot == nullptr)) return malloc_slow(size);
    Guard::on_alloc(slot, bin);
    return slot;
  }

  HZ_INLINE static void free(void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    Thread& t = S::fast();
    const Tag local = Route::local_bin(tag, t.route);
    if constexpr (Route::kOwned) {
      if (HZ_UNLIKELY(local > kLastBin)) return free_elsewhere(block);
    }
    const Bin bin = static_cast<Bin>(local);
    if (HZ_UNLIKELY(!Guard::may_free(t.guard, block, bin))) return free_slow(block);
    take_in(t, bin, block);
  }

  // --- slow

  HZ_SLOW static void* malloc_above_table(std::size_t size) {
    if (size - 1 >= kLargeMax) return malloc_slow(size);
    const Bin bin = scan_bin(size);
    void* slot = Front::pop(S::fast().front, bin);
    if (slot == nullptr) return malloc_slow(size);
    Guard::on_alloc(slot, bin);
    return slot;
  }

  HZ_SLOW static void* malloc_slow(std::size_t size) {
    bool zeroed = false;
    return allocate(bin_for(size), size, 1, zeroed);
  }

  static void* calloc(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
    const Bin bin = bin_for(bytes);
    bool zeroed = false;
    void* slot = bin == kHugeBin ? nullptr : Front::pop(S::fast().front, bin);
    if (slot != nullptr) {
      Guard::on_alloc(slot, bin);
    } else {
      slot = allocate(bin, bytes, 1, zeroed);
    }
    if (slot != nullptr && !zeroed && !(bin == kHugeBin && H::cleared(slot))) std::memset(slot, 0, bytes);
    return slot;
  }

  // `alignment` is a power of two up to kMaxAlignment.
  HZ_INLINE static void* aligned(std::size_t alignment, std::size_t size) {
    if (size > PTRDIFF_MAX) return nullptr;
    const Bin bin = aligned_bin(size == 0 ? 1 : size, alignment);
    void* slot = bin == kHugeBin ? nullptr : Front::pop(S::fast().front, bin);
    if (slot != nullptr) return Guard::on_alloc(slot, bin), slot;
    bool zeroed = false;
    return allocate(bin, size, alignment, zeroed);
  }

  static void* realloc(void* block, std::size_t size) {
    const std::size_t old_size = usable_size(block);  // reports what is no block
    if (old_size == 0) return nullptr;
    if (size <= old_size && size >= old_size / 2) return block;
    if (old_size > kLargeMax && size > kLargeMax) {
      Entered here;
      void* resized = H::resize(here.thread(), block, size);
      if (resized != nullptr) count_bytes(here.thread(), old_size, H::usable_size(resized));
      return resized;
    }
    void* moved = malloc(size);
    if (moved == nullptr) return size <= old_size ? block : nullptr;
    std::memcpy(moved, block, size < old_size ? size : old_size);
    free(block);
    return moved;
  }

  // Bytes usable in a live block; 0 after a report if it is none.
  static std::size_t usable_size(const void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    if (HZ_UNLIKELY(!J::plausible(tag, block))) return 0;
    const Bin bin = Route::bin(tag);
    return bin == kHugeBin ? H::usable_size(block) : bin_size(bin);
  }

  // The caller says how large the block was asked to be. `slack`: by how many classes a block may exceed its size,
  // because realloc leaves it in place down to half.
  static constexpr unsigned kExact = 0, kAfterRealloc = 8;

  static void free_sized(void* block, std::size_t size, std::size_t alignment, unsigned slack) {
    const Tag tag = Route::find(S::global.route, address(block));
    if (tag != 0) {  // else free() reports it
      const Bin bin = Route::bin(tag);
      const Bin asked = alignment > kMinAlign ? aligned_bin(size == 0 ? 1 : size, alignment) : bin_for(size);
      const bool fits = bin == kHugeBin ? H::fits(block, size, slack != kExact) : asked <= bin && bin <= asked + slack;
      if (HZ_UNLIKELY(!fits)) Guard::report(Fault::kSizeMismatch, block, bin, Line::kName);
    }
    free(block);
  }

  static bool owns(const void* at) {
    const Tag tag = Route::find(S::global.route, address(at));
    const Bin bin = Route::bin(tag);
    const auto offset = static_cast<std::uint16_t>(address(at));
    return tag != 0 && (bin == kHugeBin ? offset == 0 : is_slot_start(bin, offset));
  }

  static bool trim(std::size_t pad) {
    if (!Threads<Line>::open()) return false;
    Threads<Line>::collect_leftovers();
    Revocation<Line>::revoke_others();
    Entered here;
    return B::reclaim(here.thread(), pad) != 0;
  }

 private:
  // Into this thread's bin, or, if that is full, the slow way: there it has to be live.
  HZ_INLINE static void take_in(Thread& t, Bin bin, void* block) {
    Guard::on_free(t.guard, block, bin);
    if (HZ_UNLIKELY(!Front::admit(t.front, bin, block))) {
      Front::turn_away(t.front, bin);
      Guard::on_alloc(block, bin);
      return free_slow(block);
    }
    Front::put(t.front, bin, block);
  }

  HZ_INLINE static Bin bin_for(std::size_t size) {
    return size == 0 ? 1 : size <= kLargeMax ? scan_bin(size) : kHugeBin;
  }
  static Event kind_of(Event small, Bin bin) {
    const unsigned kind = bin <= kLastSmallBin ? 0 : bin <= kLastMediumBin ? 1 : 2;
    return static_cast<Event>(static_cast<unsigned>(small) + kind);
  }
  static void count(Thread& t, Event small, Event total, Bin bin, const void* block) {
    if (!S::global.counting.load(std::memory_order_relaxed)) return;
    Observe::count(t.observe, kind_of(small, bin), 1);
    Observe::count(t.observe, total, bin == kHugeBin ? H::usable_size(block) : bin_size(bin));
  }
  static void count_bytes(Thread& t, std::size_t freed, std::size_t allocated) {
    if (!S::global.counting.load(std::memory_order_relaxed)) return;
    Observe::count(t.observe, Event::kBytesFreed, freed);
    Observe::count(t.observe, Event::kBytesAllocated, allocated);
  }

  static void* allocate(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed) {
    void* block = allocate_here(bin, size, alignment, zeroed);
    // What other threads cache may be what is missing.
    if (HZ_UNLIKELY(block == nullptr) && size < Source::bytes(S::global.source) && Revocation<Line>::revoke_others())
      block = allocate_here(bin, size, alignment, zeroed);
    Purger<Line>::start_if_worth();
    return HZ_LIKELY(block != nullptr) ? block : no_memory();
  }

  static void* allocate_here(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed) {
    Entered here;
    Thread& t = here.thread();
    if (!Threads<Line>::is_open()) return nullptr;
    void* block = nullptr;
    if (bin == kHugeBin) {
      block = H::allocate(t, size, alignment, zeroed);
    } else {
      block = Front::pop(t.front, bin);
      if (block != nullptr) {
        Guard::on_alloc(block, bin);
      } else {
        block = B::refill(t, bin, zeroed);
      }
    }
    if (block != nullptr) count(t, Event::kAllocSmall, Event::kBytesAllocated, bin, block);
    return block;
  }

  HZ_COLD static void* no_memory() {
    errno = ENOMEM;
    return nullptr;
  }

  // Not this thread's, or nobody's: most often a remote free, which needs no lock.
  HZ_SLOW static void free_elsewhere(void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    const Bin bin = Route::bin(tag);
    Thread& t = S::fast();
    if (HZ_UNLIKELY(!t.alive || bin > kLastBin || bin == 0 || !Guard::may_free(t.guard, block, bin)))
      return free_slow(block);
    if (Remote::kDirect && bin_slots(bin) == 1) return free_whole(t, bin, block);
    if (HZ_UNLIKELY(!deferred(t, Route::owner(tag), bin, block))) return free_slow(block);
    if constexpr (Remote::kDirect) {
      if (HZ_UNLIKELY(Remote::help_due(t.remote, bin))) help(Route::owner(tag));
    }
  }

  // A stranger's slot that is all of its span needs no way back: span and slot are this thread's from here on.
  static void free_whole(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(!Guard::claim(t.guard, block, bin))) return free_slow(block);
    Loose<Line>::own(t, bin, block);
    take_in(t, bin, block);
  }

  // This thread has sent so much that it looks after what waits for one whom it sent to.
  HZ_SLOW static void help(unsigned owner) {
    if constexpr (Remote::kDirect) {
      Entered here;
      Remote::helped(here.thread().remote);
      Loose<Line>::help(here.thread(), owner);
    }
  }

  // The outbox is ours while the flag is up and we still see our own state after that: see revoke.hpp.
  HZ_INLINE static bool deferred(Thread& t, unsigned owner, Bin bin, void* block) {
    t.deferring.put(true);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const bool admitted = HZ_LIKELY(&S::fast() == &t) && Remote::admit(t.remote, owner, bin) &&
                          !Remote::is_latest(t.remote, block) && HZ_LIKELY(Guard::claim(t.guard, block, bin));
    if (admitted) defer(t, owner, bin, block);
    // Release: whoever finds the flag down finds the outbox as we left it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t.deferring.set_last(false);
    return admitted;
  }

  HZ_INLINE static void defer(Thread& t, unsigned owner, Bin bin, void* block) {
    Remote::defer(t.remote, owner, bin, block);
    if constexpr (Remote::kDirect) {
      Observe::count(t.observe, Event::kRemoteSent, 1);
      Observe::count(t.observe, Event::kBytesSent, bin_size(bin));
    }
  }

  HZ_SLOW static void free_slow(void* block) {
    if (block == nullptr) return;
    const Tag tag = Route::find(S::global.route, address(block));
    if (!J::plausible(tag, block)) return;
    free_here(block, tag);
    Purger<Line>::start_if_stuck();
  }

  static void free_here(void* block, Tag tag) {
    const Bin bin = Route::bin(tag);
    Entered here;
    Thread& t = here.thread();
    count(t, Event::kFreeSmall, Event::kBytesFreed, bin, block);
    if (bin == kHugeBin) return H::free(t, block);
    if (Route::kOwned && Route::owner(tag) != t.owner) {
      if (HZ_UNLIKELY(!Guard::claim(S::shared.guard, block, bin))) return J::refuse(Fault::kDoubleFree, block, bin);
      if (!Remote::admit(t.remote, Route::owner(tag), bin)) B::deliver(t, false);
      return defer(t, Route::owner(tag), bin, block);
    }
    Guard::on_free(S::shared.guard, block, bin);
    if (Front::admit(t.front, bin, block)) {
      Front::put(t.front, bin, block);
    } else {
      Front::turn_away(t.front, bin);
      B::flush(t, bin, block);
    }
  }
};

}  // namespace hz
