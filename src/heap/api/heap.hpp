// SPDX-License-Identifier: Apache-2.0
//
// The heap of a line. The upper half is the hot path: malloc and free touch this thread's state and one route
// word, and end in a tail call where they cannot go on. The lower half are the slow paths, one lock around
// one crossing of the boundary. Called by src/export alone.
#pragma once

#include <cerrno>
#include <cstring>

#include "heap/api/judge.hpp"
#include "heap/api/quotas.hpp"
#include "heap/boundary/boundary.hpp"
#include "heap/huge/huge.hpp"
#include "heap/of_line.hpp"
#include "heap/process/purger.hpp"

namespace hz {

template <class Line>
struct Heap {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using B = Boundary<Line>;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Guard = typename Line::Guard;
  using Exchange = typename Line::Exchange;
  using Observe = typename Line::Observe;
  using Source = typename Line::Source;
  using Policy = typename Line::Policy;
  using H = Huge<Line>;
  using J = Judge<Line>;
  using F = Heaps<Line>;
  using Entered = typename Threads<Line>::Entered;
  using Tag = typename Route::Tag;

  // Bytes behind each block that are the guard's. With them a size has no more than what was asked for, a
  // slot reads as zero when it is handed out, and what is too large for a slot has a run of its own.
  static constexpr std::size_t kSeal = Guard::kSealBytes;
  static constexpr bool kSealed = kSeal != 0;
  // A slot that the hot path looks for: what is larger a guard with seals leaves to the slow one.
  static constexpr std::size_t kMostAtHand = [] {
    if constexpr (kSealed) return Guard::kMostAtHand;
    return kTableMax;
  }();
  // A block of so many bytes that grows gets a run, which can become larger where it lies. Requires: no other
  // thread, for that would take what lies behind it.
  static constexpr std::size_t kGrowsAsRun = 2 * kGranule;

  // --- hot

  HZ_INLINE static void* malloc(std::size_t size) {
    void* slot = at_hand(size);
    return HZ_LIKELY(slot != nullptr) ? slot : malloc_slow(size);
  }
  // What malloc gives without a further step; nullptr: malloc_slow has to go on. For callers that go on
  // otherwise.
  HZ_INLINE static void* at_hand(std::size_t size) {
    const std::size_t last = size - 1;  // of size 0: out of the table
    if (HZ_UNLIKELY(last >= kMostAtHand - kSeal)) return nullptr;
    return popped(classes.of((last + kSeal) / kMinAlign), size);
  }
  // The same for sizes of up to `most`, which is at most kMostTried.
  static constexpr std::size_t kMostTried = kMostAtHand - kSeal;
  HZ_INLINE static void* at_hand_up_to(std::size_t most, std::size_t size) {
    const std::size_t last = size - 1;
    if (HZ_UNLIKELY(last >= most)) return nullptr;
    return popped(classes.of((last + kSeal) / kMinAlign), size);
  }
  // The same for an alignment, a power of two, when the class of that size keeps it: of types always, because
  // their size is a multiple of their alignment.
  HZ_INLINE static void* at_hand(std::size_t size, std::size_t alignment) {
    const std::size_t room = kSealed ? align_up(size + kSeal, alignment) : size;
    const std::size_t last = (room < alignment ? alignment : room) - 1;
    if (HZ_UNLIKELY(last >= (kSealed ? kMostAtHand : kMediumMax))) return nullptr;
    if (kSealed && HZ_UNLIKELY(size - 1 >= kMostAtHand - kSeal))
      return nullptr;  // none, or the room overflows
    const Bin bin = classes.of(last / kMinAlign);
    return HZ_LIKELY((bin_size(bin) & (alignment - 1)) == 0) ? popped(bin, size) : nullptr;
  }

  HZ_INLINE static void free(void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    Thread& t = S::fast();
    const Tag local = Route::local_bin(tag, t.route);
    if constexpr (Route::kOwned) {
      if (HZ_UNLIKELY(local > kLastBin)) return free_elsewhere(block);
    }
    free_own(t, static_cast<Bin>(local), block);
  }

  // The caller says how large the block was asked to be; whether it may be smaller than that, because realloc
  // leaves a block in place down to half. Whatever is not plainly right here is looked at by free_judged.
  static constexpr bool kExact = false, kAfterRealloc = true;

  HZ_INLINE static void free_sized(void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    free_sized_up_to([] { return kMostSized; }, block, size, alignment,
                     [=] { free_judged(block, size, alignment, shrunk); });
  }
  // Without realloc, and judged from the first.
  static void free_exact(void* block, std::size_t size, std::size_t alignment) {
    free_judged(block, size, alignment, kExact);
  }
  // Frees a block of up to `most()` bytes, which is at most kMostSized; leaves whatever is not plainly right
  // to `otherwise`.
  static constexpr std::size_t kMostSized = kTableMax;
  template <class Most, class Otherwise>
  HZ_INLINE static void free_sized_up_to(Most most, void* block, std::size_t size, std::size_t /*alignment*/,
                                         Otherwise otherwise) {
    const Tag tag = Route::find(S::global.route, address(block));
    Thread& t = S::fast();
    const Tag local = Route::local_bin(tag, t.route);
    const std::size_t last = size - 1;
    // A guard with seals compares the size when it reads the seal, which it does but once.
    if constexpr (kSealed) {
      if (HZ_UNLIKELY(last >= most() || local > kLastBin) ||
          HZ_UNLIKELY(!Guard::may_free(t.guard, block, static_cast<Bin>(local), size)))
        return otherwise();
      take_in(t, static_cast<Bin>(local), block);
    } else {
      if (HZ_UNLIKELY(last >= most() || !is_bin(local, classes.of(last / kMinAlign)))) return otherwise();
      free_own(t, static_cast<Bin>(local), block);
    }
  }

  HZ_INLINE static void* calloc(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    void* slot = __builtin_mul_overflow(count, size, &bytes) ? nullptr : at_hand_up_to(kMostCleared, bytes);
    return HZ_LIKELY(slot != nullptr) ? cleared(slot, bytes) : calloc_slow(count, size);
  }

  // A larger block is cleared page by page.
  static constexpr std::size_t kMostCleared = kSealed ? kMostTried : kPage - 1;

  // Null allocates a block. Some interpreters (Lua) allocate by realloc alone.
  HZ_INLINE static void* realloc(void* block, std::size_t size) {
    const std::size_t old_size = slot_bytes(block);
    if (HZ_LIKELY(may_stay(size, old_size))) return block;
    return block == nullptr ? realloc_null(size) : realloc_slow(block, size);
  }

  // Bytes usable in a live block; 0 after a report if it is none.
  HZ_INLINE static std::size_t usable_size(const void* block) {
    const std::size_t bytes = slot_bytes(block);
    return HZ_LIKELY(bytes != 0) ? bytes : usable_size_slow(block);
  }

  // --- slow

  // The slow ways to a block take along who called, for the heap profile.
  HZ_SLOW static void* malloc_slow(std::size_t size) { return malloc_for(size, __builtin_return_address(0)); }

  HZ_SLOW static void* calloc_slow(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : zeroed(1, bytes);
  }
  // A block whose `size` bytes read as zero. `alignment` is a power of two.
  HZ_SLOW static void* zeroed(std::size_t alignment, std::size_t size) {
    if (size > PTRDIFF_MAX) return no_memory();
    const Bin bin = bin_for(size, alignment);
    bool zeroed = kSealed;
    void* block = bin == kHugeBin ? nullptr : popped_any(bin, size);
    if (block == nullptr) block = allocate(bin, size, alignment, zeroed, __builtin_return_address(0), true);
    if (block != nullptr && !kSealed && !zeroed && !(bin == kHugeBin && H::cleared(block)))
      size < kPage ? void(std::memset(block, 0, size)) : clear_pages(block, size);
    return block;
  }
  // Pages that read as zero are not written to: of a slot that waited in a bin since its span was new they
  // have no memory yet. A frame of its own: test/stack.
  HZ_SLOW static void clear_pages(void* block, std::size_t size) {
    const std::uintptr_t end = address(block) + size;
    for (std::uintptr_t at = address(block), next = 0; at != end; at = next) {
      next = (at & ~(kPage - 1)) + kPage;
      if (next > end) next = end;
      if (!Zeroes::are_words(at, next)) std::memset(pointer(at), 0, next - at);
    }
  }

  // `alignment` is a power of two.
  HZ_INLINE static void* aligned(std::size_t alignment, std::size_t size) {
    void* slot = at_hand(size, alignment);
    return HZ_LIKELY(slot != nullptr) ? slot : aligned_slow(alignment, size);
  }
  HZ_SLOW static void* aligned_slow(std::size_t alignment, std::size_t size) {
    if (size > PTRDIFF_MAX) return no_memory();
    const Bin bin = bin_for(size, alignment);
    void* slot = bin == kHugeBin ? nullptr : popped_any(bin, size);
    return slot != nullptr ? slot : crossed(bin, size, alignment, __builtin_return_address(0));
  }

  // Allocates in the heap of `block`, for the thread that has it. `alignment` is a power of two.
  static void* aligned_beside(const void* block, std::size_t alignment, std::size_t size) {
    void* beside = nullptr;
    if (HZ_UNLIKELY(F::holder_of(block) != 0) && F::allocate_beside(block, alignment, size, beside))
      return beside;
    return aligned(alignment, size);
  }

  // Allocates. A function of its own, so that realloc of a block that stays needs no stack frame.
  HZ_SLOW static void* realloc_null(std::size_t size) { return malloc(size); }
  // Moves, resizes or, for a size of 0, frees a block.
  HZ_SLOW static void* realloc_slow(void* block, std::size_t size) {
    if (size == 0) return free(block), nullptr;
    const std::size_t slot = slot_bytes(block);
    if (kSealed && slot == 0 && has_grown_in_page(block, size)) return block;
    const std::size_t old_size =
        HZ_LIKELY(slot != 0) ? slot : usable_size_slow(block);  // reports what is no block
    if (old_size == 0 && !is_empty(block)) return no_memory();
    if (may_stay(size, old_size)) return block;
    const void* const caller = __builtin_return_address(0);
    if constexpr (kSealed) {
      if (stays_sealed(block, size)) return block;
      if (is_run(block) && old_size != 0 && size > old_size) return resized(block, old_size, size, caller);
    } else if (old_size > kGrowsAsRun && size > kGrowsAsRun && is_run(block)) {
      return resized(block, old_size, size, caller);
    }
    void* moved = nullptr;
    if (HZ_UNLIKELY(slot == 0 && F::holder_of(block) != 0)) {
      moved = aligned_beside(block, 1, size);
    } else if (!kSealed && size > old_size && old_size >= kGrowsAsRun && is_alone()) {
      moved = crossed(kHugeBin, size, 1, caller);
    } else {
      moved = at_hand(size);
      if (moved == nullptr) moved = malloc_for(size, caller);
    }
    if (moved == nullptr) return size <= old_size ? kept(block, size) : nullptr;
    std::memcpy(moved, block, size < old_size ? size : old_size);
    free(block);
    return moved;
  }
  // Relaxed: only speed depends on it.
  static bool is_alone() { return S::global.thread_count.load(std::memory_order_relaxed) <= 1; }
  // Shrinks a live block where it lies, because no other memory is available.
  static void* kept(void* block, std::size_t size) {
    const Tag tag = Route::find(S::global.route, address(block));
    const Bin bin = Route::bin(tag);
    if (tag == 0) {
      GuardedPool::shrink(block, size);
    } else if (!kSealed || bin == kHeapBin) {
      FaultReport::keep(block);
    } else if (!has_resealed(block, size)) {
      Entered here;
      const std::size_t before = H::run_bytes(block);
      H::shrink_fenced(here.thread(), block, size);
      count_bytes(here.thread(), before, H::run_bytes(block));
    }
    return block;
  }

  // The block where it lies, with room for `size` bytes if it can have that there: what it has then. Only a
  // huge block can have more or less than it has. 0 after a report if it is no block.
  HZ_SLOW static std::size_t resize_in_place(void* block, std::size_t size) {
    const std::size_t old_size = usable_size(block);
    if constexpr (kSealed)
      return (old_size != 0 || is_empty(block)) && has_resealed(block, size) ? size : old_size;
    if (old_size == 0 || Route::bin(Route::find(S::global.route, address(block))) != kHugeBin ||
        H::bin_of(block) != kHugeBin)
      return old_size;
    bool sample = false;
    {
      Entered here;
      if (!H::resize_in_place(here.thread(), block, size)) return old_size;
      sample = is_sample(here.thread(), block);
      count_bytes(here.thread(), old_size, H::run_bytes(block));
    }
    if (HZ_UNLIKELY(sample)) add(block, kHugeBin, __builtin_return_address(0));
    return H::usable_size(block);
  }

  // What would be usable in a block of that size and alignment, a power of two; 0: there is no such block.
  static std::size_t good_size(std::size_t alignment, std::size_t size) {
    if (size > H::kMaxBytes - kGranule || alignment > H::kMaxBytes) return 0;
    if constexpr (kSealed) return size;
    // A block on a guarded page has the bytes that were asked for.
    if (HZ_UNLIKELY(GuardedPool::every() != 0) && size - 1 < GuardedPool::most()) return size;
    const Bin bin = bin_for(size, alignment);
    return bin != kHugeBin ? bin_size(bin) : H::bytes_for(size);
  }

  HZ_SLOW static std::size_t usable_size_slow(const void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    if (block == nullptr || !J::plausible(tag, block)) return 0;
    const Bin bin = Route::bin(tag);
    if (HZ_UNLIKELY(tag == 0)) return GuardedPool::size_of(block);
    if (bin <= kLastBin) return bytes_of(bin, block);
    if (bin == kHeapBin) return F::bytes_at(block);
    Forks<Line>::notice_process();
    return H::usable_size(block);
  }
  // A live block that has no byte; reports nothing.
  static bool is_empty(const void* block) {
    return kSealed && check(block) == Fault::kNone && bytes_at(block) == 0;
  }

  static bool owns(const void* at) {
    const Tag tag = Route::find(S::global.route, address(at));
    const Bin bin = Route::bin(tag);
    const auto offset = static_cast<std::uint16_t>(address(at));
    if (HZ_UNLIKELY(bin == kHeapBin)) return F::bytes_at(at) != 0;
    if (HZ_UNLIKELY(tag == 0)) return GuardedPool::has(at) && GuardedPool::is_start(at);
    return (bin == kHugeBin ? offset == 0 : is_slot_start(bin, offset));
  }
  // Bytes of what begins there, live or free; 0 where nothing of ours does. Reports nothing.
  static std::size_t bytes_at(const void* at) {
    if (!owns(at)) return 0;
    const Bin bin = Route::bin(Route::find(S::global.route, address(at)));
    if (bin <= kLastBin) return bin == 0 ? GuardedPool::size_of(at) : bytes_of(bin, at);
    if (bin == kHeapBin) return F::bytes_at(at);
    Forks<Line>::notice_process();
    return H::usable_size(at);
  }

  // Returns true if a program that can move the block should: it allocates another one of its size, copies,
  // and frees this one. That one lies in a fuller span, and this one's is nearer to its end. False for what
  // has no slot of a span, and after a report for what is no block.
  HZ_SLOW static bool defrag_hint(const void* block) {
    if (usable_size(block) == 0) return false;
    const Bin bin = Route::bin(Route::find(S::global.route, address(block)));
    if (bin - 1 >= kLastBin || is_large(bin)) return false;
    Entered here;
    return B::prefer_fuller(here.thread(), bin, address(block) & ~(kGranule - 1));
  }

  // What a free would find wrong with it, as far as the line sees that at the free; reports nothing.
  static Fault check(const void* at) { return J::look(Route::find(S::global.route, address(at)), at).fault; }

  // What this thread caches returns to its spans.
  static void give_up_cache() {
    Entered here;
    Reclaim<Line>::give_up(here.thread(), true);
    SpanReturn<Line>::purge_if_due(here.thread());
  }

  static bool trim(std::size_t pad) {
    if (!Start<Line>::open()) return false;
    Threads<Line>::collect_leftovers();
    const std::size_t before = kSealed ? Source::held_bytes(S::global.source) : 0;
    Revocation<Line>::revoke_others();
    Entered here;
    const std::size_t purged = Reclaim<Line>::reclaim(here.thread(), pad);
    if constexpr (kSealed) return Source::held_bytes(S::global.source) < before;  // pages go with their spans
    return purged + Discard<Line>::all(here.thread()) != 0;
  }
  // Free pages go back to the system; whether any did. What threads cache stays where it is.
  static bool purge() {
    if (!Start<Line>::open()) return false;
    Entered here;
    return SpanReturn<Line>::purge(here.thread(), 0, SIZE_MAX) != 0;
  }

 private:
  friend struct Heaps<Line>;

  HZ_INLINE static void* malloc_for(std::size_t size, const void* caller) {
    const Bin bin = bin_for(size);
    // Beyond the table that the hot path looks into, the bin may well have some.
    void* slot = size > kMostAtHand - kSeal && bin != kHugeBin ? popped_any(bin, size) : nullptr;
    return slot != nullptr ? slot : crossed(bin, size, 1, caller);
  }
  // Of a slot that the program may have; 0: look closer.
  HZ_INLINE static std::size_t slot_bytes(const void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    const Bin bin = Route::bin(tag);
    return HZ_LIKELY(bin - 1 < kLastBin && J::fault_of_slot(bin, block) == Fault::kNone)
               ? bytes_of(bin, block)
               : 0;
  }
  // Of a block of the class.
  HZ_INLINE static std::size_t bytes_of(Bin bin, [[maybe_unused]] const void* block) {
    if constexpr (kSealed) return Guard::bytes(block, bin);
    return bin_size(bin);
  }
  // Whether realloc leaves a block as it is.
  HZ_INLINE static bool may_stay(std::size_t size, std::size_t old_size) {
    if constexpr (kSealed) return size - 1 < old_size && size == old_size;
    return size - 1 < old_size && size >= old_size / 2;
  }
  // Whether it stays in its slot at another size.
  HZ_INLINE static bool stays_sealed(void* block, std::size_t size) {
    const Bin bin = Route::bin(Route::find(S::global.route, address(block)));
    return bin - 1 < kLastBin && size >= bin_size(bin) / 2 && has_resealed(block, size);
  }
  // Returns true if the block is a run and became larger on the page where it ends. Returns false for what is
  // no block.
  static bool has_grown_in_page([[maybe_unused]] void* block, [[maybe_unused]] std::size_t size) {
    if constexpr (kSealed) {
      if (static_cast<std::uint16_t>(address(block)) != 0 || !is_run(block)) return false;
      const std::size_t before = Guard::run_bytes(block);
      if (size <= before || before == 0 || size > align_up(before, os::page_bytes())) return false;
      if (!Guard::is_run_sealed_up_to(block, size)) return false;
      Guard::grow_run(block, size);
      return true;
    }
    return false;
  }
  // Whether it has a run, and is no sample of a class in one.
  static bool is_run(const void* block) {
    return Route::bin(Route::find(S::global.route, address(block))) == kHugeBin &&
           H::bin_of(block) == kHugeBin;
  }
  // The same, however small it becomes.
  HZ_INLINE static bool has_resealed(void* block, std::size_t size) {
    const Bin bin = Route::bin(Route::find(S::global.route, address(block)));
    if (bin - 1 >= kLastBin || size > bin_size(bin) - kSeal) return false;
    if constexpr (kSealed) Guard::seal_again(block, bin, size);
    return true;
  }
  HZ_INLINE static void* cleared(void* slot, [[maybe_unused]] std::size_t bytes) {
    if constexpr (kSealed) return slot;
    return std::memset(slot, 0, bytes);
  }
  // With a guard that has no room behind blocks in such slots; and a block of no bytes.
  static bool is_beyond([[maybe_unused]] std::size_t size) {
    if constexpr (kSealed) return size - 1 >= Guard::kMostSlot - kSeal;
    return false;
  }
  static void* resized(void* block, std::size_t old_size, std::size_t size, const void* caller) {
    bool sample = false;
    void* to = nullptr;
    {
      Entered here;
      if constexpr (kSealed) old_size = H::run_bytes(block);  // as it was counted
      to = H::resize(here.thread(), block, size);
      if (to == nullptr) return no_memory();
      sample = is_sample(here.thread(), to);
      count_bytes(here.thread(), old_size, H::run_bytes(to));
    }
    if (HZ_UNLIKELY(sample)) add(to, kHugeBin, caller);
    return to;
  }

  // --- the heap profile

  // What realloc makes of a huge block is another allocation: the heap ends what the old one was as a sample.
  static bool is_sample(Thread& t, const void* huge) {
    return HZ_UNLIKELY(HeapProfile::is_on()) && Quotas<Line>::counts(t) &&
           Sampling::next(*t.countdown, kHugeBin, H::run_bytes(huge), S::is_own_work()) != Sample::kNone;
  }
  // Without a lock of the heap's. What takes the lock of samples tells fork hooks so, as who takes any.
  using Telling = typename Faults<Line>::Telling;
  HZ_COLD static void add(const void* block, Bin bin, const void* caller) {
    const Telling telling;
    HeapProfile::add(block, bin, bin == kHugeBin ? H::run_bytes(block) : bin_size(bin), caller,
                     S::tls().walking);
  }
  // The class of what lies in a run, which is about to be freed.
  static Bin ended(const void* block) {
    if (HZ_LIKELY(!HeapProfile::is_on())) return kHugeBin;
    const Telling telling;
    const Bin bin = HeapProfile::end(block);
    return bin != 0 ? bin : kHugeBin;
  }

  HZ_INLINE static void* popped(Bin bin, [[maybe_unused]] std::size_t size) {
    void* slot = Front::pop(S::supply(), bin);
    if (HZ_LIKELY(slot != nullptr) && HZ_UNLIKELY(!handed_out(slot, bin, size))) return not_free(slot, bin);
    return slot;
  }
  HZ_INLINE static bool handed_out(void* slot, Bin bin, [[maybe_unused]] std::size_t size) {
    if constexpr (kSealed) return Guard::on_alloc(slot, bin, size);
    return Guard::on_alloc(slot, bin);
  }
  // The same of any class.
  HZ_INLINE static void* popped_any(Bin bin, std::size_t size) {
    if constexpr (kSealed) {
      if (bin > Guard::kLastAtHand) {
        void* slot = Front::pop(S::supply(), bin);
        return slot == nullptr || HZ_LIKELY(Guard::on_alloc_much(slot, bin, size)) ? slot
                                                                                   : not_free(slot, bin);
      }
    }
    return popped(bin, size);
  }
  // What the boundary handed out.
  static void* sealed(void* slot, [[maybe_unused]] Bin bin, [[maybe_unused]] std::size_t size) {
    if constexpr (kSealed) {
      if (HZ_LIKELY(slot != nullptr)) Guard::seal(slot, bin, size);
    }
    return slot;
  }
  // A bin held it all the same: it stays out of circulation.
  HZ_COLD static void* not_free(void* slot, Bin bin) {
    Guard::report(Guard::fault_of_free(slot, bin), slot, bin, Line::kName, Seen::kLater);
    return nullptr;
  }
  // A slot of this thread's, if it is one.
  HZ_INLINE static void free_own(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(!Guard::may_free(t.guard, block, bin))) return free_slow(block);
    take_in(t, bin, block);
  }
  // Whether that is what local_bin says of a slot of this thread's. A compare of bytes takes its operand from
  // memory.
  HZ_INLINE static bool is_bin(Tag local, Bin bin) {
    if constexpr (Route::kOwned) return local == bin;
    return static_cast<std::uint8_t>(local) == static_cast<std::uint8_t>(bin);
  }
  // Into this thread's bin, or, if that is full, the slow way: there it has to be live, but for a guard with
  // seals, who would clear it twice.
  HZ_INLINE static void take_in(Thread& t, Bin bin, void* block) {
    if constexpr (kSealed) {
      if (HZ_UNLIKELY(bin > Guard::kLastAtHand)) return take_in_much(t, bin, block);
    }
    Guard::on_free(t.guard, block, bin);
    take_in_cleared(t, bin, block);
  }
  HZ_INLINE static void take_in_cleared(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(!Front::admit(t.front, bin, block))) {
      if constexpr (kSealed) return turned_away(t, bin, block);
      Front::turn_away(t.front, bin);
      Guard::on_alloc(block, bin);
      return free_slow(block);
    }
    Front::put(t.front, bin, block);
  }
  HZ_SLOW static void take_in_much(Thread& t, Bin bin, void* block) {
    if constexpr (kSealed) Guard::on_free_much(block, bin);
    take_in_cleared(t, bin, block);
  }
  HZ_SLOW static void turned_away(Thread& t, Bin bin, void* block) {
    Front::turn_away(t.front, bin);
    Entered here;
    count(here.thread(), Event::kFreeSmall, Event::kBytesFreed, bin, block);
    put_or_flush(here.thread(), bin, block);
  }

  HZ_INLINE static Bin bin_for(std::size_t size) {
    if constexpr (kSealed) return bin_for(size, 1);
    return size == 0 ? 1 : size <= kLargeMax ? bin_for_size(size) : kHugeBin;
  }
  HZ_INLINE static Bin bin_for(std::size_t size, std::size_t alignment) {
    if constexpr (kSealed) {
      if (size == 0 ? Fences<Line>::may_be_empty() : is_beyond(size)) return kHugeBin;
      return bin_of_slot(size, alignment);
    }
    return aligned_bin(size == 0 ? 1 : size, alignment);
  }
  // With a guard that has seals: of a slot, if the block may lie in one.
  static Bin bin_of_slot(std::size_t size, std::size_t alignment) {
    const Bin bin = aligned_bin(align_up(size + kSeal, alignment), alignment);
    if constexpr (kSealed) return bin == kHugeBin || bin_size(bin) > Guard::kMostSlot ? kHugeBin : bin;
    return bin;
  }
  static Event kind_of(Event small, Bin bin) {
    const unsigned kind = bin <= kLastSmallBin ? 0 : bin <= kLastMediumBin ? 1 : 2;
    return static_cast<Event>(static_cast<unsigned>(small) + kind);
  }
  // A block of a class, or in a run: samples are of a class and in a run.
  static void count(Thread& t, Event small, Event total, Bin bin, const void* block) {
    if (!S::global.counting.load(std::memory_order_relaxed)) return;
    Observe::count(t.observe, kind_of(small, bin), 1);
    Observe::count(t.observe, total, bin == kHugeBin ? H::run_bytes(block) : bin_size(bin));
  }
  static void count_bytes(Thread& t, std::size_t freed, std::size_t allocated) {
    if (!S::global.counting.load(std::memory_order_relaxed)) return;
    Observe::count(t.observe, Event::kBytesFreed, freed);
    Observe::count(t.observe, Event::kBytesAllocated, allocated);
  }

  HZ_SLOW static void* crossed(Bin bin, std::size_t size, std::size_t alignment, const void* caller) {
    bool zeroed = false;
    return allocate(bin, size, alignment, zeroed, caller);
  }
  // `wants_zeroes`: the caller clears the block unless it is `zeroed`.
  static void* allocate(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed, const void* caller,
                        bool wants_zeroes = false) {
    Sample sample = Sample::kNone;
    void* block = twice(size, [&]() -> void* {
      if (bin == kHugeBin) {
        void* const run = huge_here(size, alignment, zeroed, &sample);
        if constexpr (kSealed) {  // where none is to be had, a block of no bytes takes a slot
          if (run == nullptr && size == 0) bin = bin_of_slot(size, alignment);
        }
        if (bin == kHugeBin) return run;
      }
      return allocate_here(bin, size, alignment, zeroed, sample, wants_zeroes);
    });
    if (HZ_UNLIKELY(sample != Sample::kNone)) {
      sample == Sample::kProfile ? add(block, bin, caller)
                                 : GuardedPool::note(block, caller, S::tls().walking);
      return block;
    }
    return bin == kHugeBin ? block : sealed(block, bin, size);
  }
  // A huge block, with no way to a class's: who asks is deep in the stack already. It holds a lock, too, and
  // adds a sample of the heap profile when it has none.
  static void* huge(std::size_t size, std::size_t alignment, bool& zeroed, Sample* sample) {
    return twice(size, [&] { return huge_here(size, alignment, zeroed, sample); });
  }
  template <class Here>
  HZ_INLINE static void* twice(std::size_t size, Here here) {
    void* block = here();
    // What other threads cache may be what is missing.
    if (HZ_UNLIKELY(block == nullptr) && size < Source::bytes(S::global.source) &&
        Revocation<Line>::revoke_others())
      block = here();
    if (HZ_UNLIKELY(Source::took_recall(S::global.source))) recall();
    Purger<Line>::start_if_worth();
    return HZ_LIKELY(block != nullptr) ? block : no_memory();
  }

  // Past the soft limit: what other threads cache, and free pages in spans. A handler that forks is in a
  // lock.
  HZ_COLD static void recall() {
    if (!S::tls().forking) trim(0);
  }

  HZ_SLOW static void* huge_here(std::size_t size, std::size_t alignment, bool& zeroed, Sample* sample) {
    Entered here;
    Thread& t = here.thread();
    if (!Start<Line>::is_open()) return nullptr;
    void* block = H::allocate(t, size, alignment, zeroed);
    if (block == nullptr) return nullptr;
    if (sample != nullptr && is_sample(t, block)) *sample = Sample::kProfile;
    count(t, Event::kAllocSmall, Event::kBytesAllocated, kHugeBin, block);
    return block;
  }
  HZ_SLOW static void* allocate_here(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed,
                                     Sample& sample, bool wants_zeroes) {
    Entered here;
    Thread& t = here.thread();
    if (!Start<Line>::is_open()) return nullptr;
    const bool sampled = HZ_UNLIKELY(Sampling::is_on());
    void* block = sampled ? Quotas<Line>::before(t, bin, size, alignment, zeroed, sample) : nullptr;
    if (block == nullptr) block = B::popped(t, bin);
    if (block == nullptr) {
      block = B::refill(t, bin, zeroed, wants_zeroes);
      tell_policy(t, bin, size, alignment);
    }
    if (sampled && sample == Sample::kNone) Quotas<Line>::after(t, bin, block);
    if (block != nullptr) count(t, Event::kAllocSmall, Event::kBytesAllocated, bin, block);
    return block;
  }

  // Of a size whose classes keep the alignment.
  static void tell_policy(const Thread& t, Bin bin, std::size_t size, std::size_t alignment) {
    if (Policy::watches())
      Policy::refilled(t.policy, align_up(size + kSeal == 0 ? 1 : size + kSeal, alignment),
                       Front::count(t.front, bin) + 1);
  }

  HZ_COLD static void* no_memory() {
    errno = ENOMEM;
    return nullptr;
  }

  // Another's slot, or a size beyond the table, or shrunk in place, or a size that cannot be true.
  HZ_SLOW static void free_judged(void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    if (alignment == 0) alignment = 1;  // as aligned_alloc takes it
    const Tag tag = Route::find(S::global.route, address(block));
    const bool guarded = HZ_UNLIKELY(tag == 0) && GuardedPool::has(block);
    if (HZ_UNLIKELY(guarded ? !fits_guarded(block, size, alignment, shrunk)
                            : tag != 0 && !fits(Route::bin(tag), block, size, alignment, shrunk)))
      return free_mismatched(block, guarded ? GuardedPool::look(block).bin : Route::bin(tag));
    free(block);  // reports where there is no block
  }
  static bool fits(Bin bin, const void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    if (bin == kHugeBin) {
      Forks<Line>::notice_process();
      bin = H::bin_of(block);
      if (bin == kHugeBin) return H::fits(block, size, shrunk);
    }
    if (bin == kHeapBin) return F::fits(block, size, shrunk);
    if constexpr (kSealed) {
      const Tag tag = Route::find(S::global.route, address(block));
      if (J::look(tag, block).fault != Fault::kNone) return true;  // free says what
      return size == bytes_at(block);
    }
    // By sizes: a spare class may have been dealt out since, or before.
    const std::size_t bytes = bin_size(bin), least = size == 0 ? 1 : size;
    if (bytes < least) return false;
    // realloc leaves a block where it happens to lie right, also if its class keeps no such alignment.
    if (shrunk && least >= bytes / 2 && (address(block) & (alignment - 1)) == 0) return true;
    const Bin most = most_aligned_bin(least, alignment);
    if (most == kHugeBin || (!is_large(bin) && (bytes & (alignment - 1)) != 0)) return false;
    return bytes <= size_of_bin(most);
  }
  // What is none is reported at the free.
  HZ_COLD static bool fits_guarded(const void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    const std::size_t usable = GuardedPool::size_of(block), least = size == 0 ? 1 : size;
    if (usable == 0) return true;
    if ((address(block) & (alignment - 1)) != 0) return false;
    return least == usable || (shrunk && !kSealed && least < usable && least >= usable / 2);
  }
  HZ_COLD static void free_mismatched(void* block, Bin bin) {
    Guard::report(Fault::kSizeMismatch, block, bin, Line::kName);
    free(block);
  }

  // Not this thread's, or nobody's: most often a remote free, which needs no lock.
  HZ_SLOW static void free_elsewhere(void* block) {
    // Nobody is a stranger there: this thread's state was hidden a moment ago (heap/process/revoke.hpp), and
    // may be back.
    if constexpr (kSealed) return free_slow(block);
    const Tag tag = Route::find(S::global.route, address(block));
    const Bin bin = Route::bin(tag);
    Thread& t = S::fast();
    if (HZ_UNLIKELY(!t.alive || bin > kLastBin || bin == 0 || !Guard::may_free(t.guard, block, bin)))
      return free_slow(block);
    if (Exchange::moves_span(bin)) return free_whole(t, bin, block);
    if (HZ_UNLIKELY(!deferred(t, Route::owner(tag), bin, block))) return free_slow(block);
    if (HZ_UNLIKELY(Exchange::help_due(t.exchange, bin))) help(Route::owner(tag));
  }

  // A stranger's slot that is all of its span needs no way back: span and slot are this thread's from here
  // on.
  static void free_whole(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(Guard::claim(t.guard, block, bin) == nullptr)) return free_slow(block);
    TransferCache<Line>::own(t, bin, block);
    take_in(t, bin, block);
  }

  // This thread has sent so much that it looks after what waits for one whom it sent to.
  HZ_SLOW static void help(unsigned owner) {
    Entered here;
    Exchange::helped(here.thread().exchange);
    TransferCache<Line>::help(here.thread(), owner);
  }

  // The outbox is ours while the flag is up and we still see our own state after that: see revoke.hpp.
  HZ_INLINE static bool deferred(Thread& t, unsigned owner, Bin bin, void* block) {
    t.deferring.put(true);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    void* claimed = nullptr;
    if (HZ_LIKELY(&S::fast() == &t) && Exchange::admit(t.exchange, owner, bin) &&
        !Exchange::is_latest(t.exchange, block))
      claimed = Guard::claim(t.guard, block, bin);
    if (HZ_LIKELY(claimed != nullptr)) defer(t, owner, bin, claimed);
    // Release: whoever finds the flag down finds the outbox as we left it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t.deferring.set_last(false);
    return claimed != nullptr;
  }

  // Whether its owner can have it from now on.
  HZ_INLINE static bool defer(Thread& t, unsigned owner, Bin bin, void* claimed) {
    const std::size_t sent = Exchange::defer(t.exchange, owner, bin, claimed);
    if (sent == 0) return false;
    Observe::count(t.observe, Event::kRemoteSent, 1);
    Observe::count(t.observe, Event::kBytesSent, sent);
    t.gave(sent);
    return true;
  }

  HZ_SLOW static void free_slow(void* block) {
    if (block == nullptr) return;
    const Tag tag = Route::find(S::global.route, address(block));
    if (HZ_UNLIKELY(Route::bin(tag) == kHeapBin)) return F::free(block);
    if (HZ_UNLIKELY(tag == 0) && GuardedPool::has(block)) return free_guarded(block);
    if (!J::plausible(tag, block)) return;
    free_here(block, tag);
  }
  HZ_COLD static void free_guarded(void* block) {
    const GuardedPool::Finding found = released(block);
    if (found.fault == Fault::kNone || found.fault == Fault::kOutOfBounds) count_guarded(block, found.bin);
    if (found.fault == Fault::kNone) return;
    Guard::report(found.fault, found.at == 0 ? block : pointer(found.at), found.bin, Line::kName);
  }
  HZ_COLD static GuardedPool::Finding released(void* block) {
    GuardedPool::Stack by;
    by.walk(nullptr, S::tls().walking);  // without a lock
    const Entered here;
    return GuardedPool::release(block, by);
  }
  HZ_COLD static void count_guarded(const void* block, Bin bin) {
    Entered here;
    count(here.thread(), Event::kFreeSmall, Event::kBytesFreed, bin, block);
  }
  static void free_huge(void* block) { free_here(block, Route::find(S::global.route, address(block))); }

  static void free_here(void* block, Tag tag) {
    const Bin bin = Route::bin(tag);
    Entered here;
    Thread& t = here.thread();
    if (HZ_UNLIKELY(bin == kHugeBin && !H::claim(block)))
      return Faults<Line>::note(Fault::kDoubleFree, block, bin, Seen::kNow);
    const Bin kind = bin == kHugeBin ? ended(block) : bin;
    count(t, Event::kFreeSmall, Event::kBytesFreed, kind, block);
    if (HZ_UNLIKELY(kind != bin)) H::count_as_run(t, kind, H::run_bytes(block));
    if (bin == kHugeBin) return H::free(t, block);
    if (Route::kOwned && Route::owner(tag) != t.owner) {
      void* const claimed = Guard::claim(S::shared.guard, block, bin);
      if (HZ_UNLIKELY(claimed == nullptr))
        return Faults<Line>::note(Fault::kDoubleFree, block, bin, Seen::kNow);
      if (!Exchange::admit(t.exchange, Route::owner(tag), bin)) B::deliver(t, false);
      const bool sent = defer(t, Route::owner(tag), bin, claimed);
      return B::pass_on_if_halved(t, Route::owner(tag), bin, sent);
    }
    // The wait for the lock may have been long.
    if (Guard::kClaims && HZ_UNLIKELY(!Guard::may_free(S::shared.guard, block, bin)))
      return Faults<Line>::note(Fault::kDoubleFree, block, bin, Seen::kNow);
    if constexpr (kSealed) {
      if (bin > Guard::kLastAtHand) return Guard::on_free_much(block, bin), put_or_flush(t, bin, block);
    }
    Guard::on_free(S::shared.guard, block, bin);
    put_or_flush(t, bin, block);
  }
  static void put_or_flush(Thread& t, Bin bin, void* block) {
    if (Front::admit(t.front, bin, block)) {
      Front::put(t.front, bin, block);
    } else {
      Front::turn_away(t.front, bin);
      B::flush(t, bin, block);
    }
  }
};

}  // namespace hz
