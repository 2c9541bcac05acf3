// SPDX-License-Identifier: Apache-2.0
//
// The heap of a line. Malloc and free touch this thread's state and one route word, and end in a tail call
// where they cannot go on: in a door to a slow path, of which the compiler makes one copy in each library.
// Behind the doors are allocation.hpp, release.hpp, resize.hpp and questions.hpp. Called by src/export alone;
// a block that lies in a bin costs some forty instructions from malloc to free.
#pragma once

#include <cstring>

#include "heap/api/allocation.hpp"
#include "heap/api/questions.hpp"
#include "heap/api/release.hpp"
#include "heap/api/resize.hpp"
#include "heap/of_line.hpp"

namespace hz {

template <class Line>
struct Heap {
  static_assert(MitigationContract<MitigationOf<Line>>);
  using S = State<Line>;
  using Thread = typename S::Thread;
  using M = MitigationOf<Line>;
  using A = Allocation<Line>;
  using Q = Questions<Line>;
  using R = Release<Line>;
  using Route = typename Line::Route;
  using Source = typename Line::Source;
  using Entered = typename Threads<Line>::Entered;
  using Tag = typename Route::Tag;

  static constexpr bool kExactSizes = M::kExactSizes;

  // --- malloc

  HZ_INLINE static void* malloc(std::size_t size) {
    void* slot = at_hand(size);
    return HZ_LIKELY(slot != nullptr) ? slot : malloc_slow(size);
  }
  // Returns a slot from this thread's bin; nullptr: malloc_slow has to go on. For callers that go on
  // otherwise.
  HZ_INLINE static void* at_hand(std::size_t size) {
    const std::size_t last = size - 1;  // of size 0: out of the table
    if (HZ_UNLIKELY(last >= M::kMostAtHand - M::kMargin)) return nullptr;
    return A::popped(classes.of((last + M::kMargin) / kMinAlign), size);
  }
  // The same for sizes of up to `most`, which is at most kMostTried.
  static constexpr std::size_t kMostTried = M::kMostAtHand - M::kMargin;
  HZ_INLINE static void* at_hand_up_to(std::size_t most, std::size_t size) {
    const std::size_t last = size - 1;
    if (HZ_UNLIKELY(last >= most)) return nullptr;
    return A::popped(classes.of((last + M::kMargin) / kMinAlign), size);
  }
  // The same for an alignment, a power of two, when the class of that size keeps it: of types always, because
  // their size is a multiple of their alignment.
  HZ_INLINE static void* at_hand(std::size_t size, std::size_t alignment) {
    const std::size_t room = M::room(size, alignment);
    const std::size_t last = (room < alignment ? alignment : room) - 1;
    if (HZ_UNLIKELY(last >= M::kMostAlignedAtHand)) return nullptr;
    if (HZ_UNLIKELY(!M::is_at_hand(size))) return nullptr;
    const Bin bin = classes.of(last / kMinAlign);
    return HZ_LIKELY((bin_size(bin) & (alignment - 1)) == 0) ? A::popped(bin, size) : nullptr;
  }
  // `alignment` is a power of two.
  HZ_INLINE static void* aligned(std::size_t alignment, std::size_t size) {
    void* slot = at_hand(size, alignment);
    return HZ_LIKELY(slot != nullptr) ? slot : aligned_slow(alignment, size);
  }
  HZ_INLINE static void* calloc(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    void* slot =
        __builtin_mul_overflow(count, size, &bytes) ? nullptr : at_hand_up_to(M::kMostCleared, bytes);
    return HZ_LIKELY(slot != nullptr) ? M::cleared(slot, bytes) : calloc_slow(count, size);
  }

  // The slow paths to a block pass the caller on, for the heap profile.
  HZ_SLOW static void* malloc_slow(std::size_t size) { return A::of_size(size, __builtin_return_address(0)); }
  HZ_SLOW static void* aligned_slow(std::size_t alignment, std::size_t size) {
    return A::aligned(alignment, size, __builtin_return_address(0));
  }
  HZ_SLOW static void* calloc_slow(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? A::no_memory() : zeroed(1, bytes);
  }
  // A block whose `size` bytes read as zero. `alignment` is a power of two.
  HZ_SLOW static void* zeroed(std::size_t alignment, std::size_t size) {
    return A::zeroed(alignment, size, __builtin_return_address(0));
  }

  // --- free

  HZ_INLINE static void free(void* block) {
    const Tag tag = Route::find(S::global.route, address(block));
    Thread& t = S::fast();
    const Tag local = Route::local_bin(tag, t.route);
    if constexpr (Route::kOwned) {
      if (HZ_UNLIKELY(local > kLastBin)) return free_elsewhere(block);
    }
    R::own(t, static_cast<Bin>(local), block);
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
    if (HZ_UNLIKELY(size - 1 >= most() || !M::has_size(t.guard, local, block, size))) return otherwise();
    const Bin bin = static_cast<Bin>(local);
    if (HZ_UNLIKELY(!M::may_free_of_size(t.guard, block, bin))) return free_slow(block);
    R::take_in(t, bin, block);
  }

  HZ_SLOW static void free_slow(void* block) { R::slow(block); }
  HZ_SLOW static void free_elsewhere(void* block) { R::elsewhere(block); }
  HZ_SLOW static void free_judged(void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    R::judged(block, size, alignment, shrunk);
  }
  // For release.hpp alone, as is turned_away.
  HZ_SLOW static void take_in_much(Thread& t, Bin bin, void* block) {
    M::take_back_much(block, bin);
    R::take_in_cleared(t, bin, block);
  }
  HZ_SLOW static void turned_away(Thread& t, Bin bin, void* block) { R::turned_away(t, bin, block); }

  // --- another size

  // Null allocates a block. Some interpreters (Lua) allocate by realloc alone.
  HZ_INLINE static void* realloc(void* block, std::size_t size) {
    if (HZ_LIKELY(M::may_stay(size, Q::slot_bytes(block)))) return block;
    return block == nullptr ? realloc_null(size) : realloc_slow(block, size);
  }
  // A separate function, so that realloc of a block that stays needs no stack frame.
  HZ_SLOW static void* realloc_null(std::size_t size) { return malloc(size); }
  HZ_SLOW static void* realloc_slow(void* block, std::size_t size) {
    return Resize<Line>::realloc(block, size, __builtin_return_address(0));
  }
  HZ_SLOW static std::size_t resize_in_place(void* block, std::size_t size) {
    return Resize<Line>::in_place(block, size, __builtin_return_address(0));
  }
  static void* aligned_beside(const void* block, std::size_t alignment, std::size_t size) {
    return Resize<Line>::aligned_beside(block, alignment, size);
  }
  static void* kept(void* block, std::size_t size) { return Resize<Line>::kept(block, size); }

  // --- questions

  // Bytes usable in a live block; 0 after a report if it is none.
  HZ_INLINE static std::size_t usable_size(const void* block) {
    const std::size_t bytes = Q::slot_bytes(block);
    return HZ_LIKELY(bytes != 0) ? bytes : usable_size_slow(block);
  }
  HZ_SLOW static std::size_t usable_size_slow(const void* block) { return Q::usable_size(block); }
  HZ_SLOW static bool defrag_hint(const void* block) { return Q::defrag_hint(block); }
  static std::size_t good_size(std::size_t alignment, std::size_t size) {
    return Q::good_size(alignment, size);
  }
  static std::size_t bytes_at(const void* at) { return Q::bytes_at(at); }
  static bool owns(const void* at) { return Q::owns(at); }
  static bool is_empty(const void* block) { return Q::is_empty(block); }
  static Fault check(const void* at) { return Q::check(at); }

  // --- memory that goes back

  // Returns what this thread caches to its spans.
  static void give_up_cache() {
    Entered here;
    Reclaim<Line>::give_up(here.thread(), true);
    SpanReturn<Line>::purge_if_due(here.thread());
  }
  // Returns true if any memory went back to the system. A line whose spans go back without their pages says
  // so by what the source holds.
  static bool trim(std::size_t pad) {
    if (!Start<Line>::open()) return false;
    Threads<Line>::collect_leftovers();
    const std::size_t before = Source::held_bytes(S::global.source);
    Revocation<Line>::revoke_others();
    Entered here(typename Entered::Unborn{});
    const std::size_t purged = Reclaim<Line>::reclaim(here.thread(), pad) + Discard<Line>::all(here.thread());
    return purged != 0 || Source::held_bytes(S::global.source) < before;
  }
  // Free pages go back to the system; whether any did. What threads cache stays where it is.
  static bool purge() {
    if (!Start<Line>::open()) return false;
    Entered here;
    return SpanReturn<Line>::purge(here.thread(), 0, SIZE_MAX) != 0;
  }
};

}  // namespace hz
