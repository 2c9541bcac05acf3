// SPDX-License-Identifier: Apache-2.0
//
// POSIX: what each thread has of a type T, without thread_local: in a slot of a table, to which a
// thread-specific key leads. Nothing here allocates by malloc, where pthread_setspecific does not (macOS: a
// store into the thread's own array). See per_thread.hpp; a thread's first use costs a walk along the table.
//
// T has what a thread is born with, and two functions:
//   T::late()       what the threads share that have none of their own: those without memory for one, and
//                   those that are past their end
//   t.is_over()     whether the thread's end has been seen to: until then its T stays
#pragma once

#include <pthread.h>

#include <atomic>
#include <new>

#include "base/compiler.hpp"
#include "base/units.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {

template <class T>
class Keyed {
 public:
  HZ_INLINE static T& mine() {
    const std::uint64_t key = key_.load(std::memory_order_relaxed);
    void* at = HZ_LIKELY(key != kNoKey) ? pthread_getspecific(static_cast<pthread_key_t>(key)) : nullptr;
    return HZ_LIKELY(at != nullptr) ? *static_cast<T*>(at) : first_use();
  }

  // Slots that threads have now: for tests.
  static std::size_t in_use() {
    std::size_t count = 0;
    for (Chunk* chunk = &first_; chunk != nullptr; chunk = chunk->next.load(std::memory_order_acquire)) {
      for (const Slot& slot : chunk->slots) count += slot.taken.load(std::memory_order_relaxed) ? 1 : 0;
    }
    return count;
  }

 private:
  // Threads write into theirs at every turn: each has its line of the cache.
  struct alignas(64) Slot {
    T mine{};  // first: the key's value is its address
    std::atomic<bool> taken{false};
    unsigned calls = 0;  // of at_end()
  };
  static constexpr std::size_t kSlots = 32;
  struct Chunk {
    Slot slots[kSlots];
    std::atomic<Chunk*> next{nullptr};
  };
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};
  // Of those at the end of a thread. POSIX promises four; the destructors of others may need us as often.
  static constexpr unsigned kCallsThatKeep = 2;

  HZ_COLD static T& first_use() {
    const KeepErrno keep;
    Slot* const slot = has_key() ? free_slot() : nullptr;
    if (slot == nullptr) return late_;
    ::new (static_cast<void*>(&slot->mine)) T{};
    slot->calls = 0;
    if (set(&slot->mine)) return slot->mine;
    give_back(*slot);
    return late_;
  }

  static bool set(T* mine) {
    const auto key = static_cast<pthread_key_t>(key_.load(std::memory_order_relaxed));
    return pthread_setspecific(key, mine) == 0;
  }
  static bool has_key() {
    std::uint64_t none = kNoKey;
    if (key_.load(std::memory_order_relaxed) != kNoKey) return true;
    pthread_key_t made;
    if (pthread_key_create(&made, &at_end) != 0) return false;
    if (!key_.compare_exchange_strong(none, made, std::memory_order_relaxed)) pthread_key_delete(made);
    return true;
  }

  // The system calls it again while a value is set. The heap's own hook may come before or behind it, and
  // destructors of others before, between and behind: they find their T until the last but one call.
  static void at_end(void* value) {
    T* const mine = static_cast<T*>(value);
    if (mine == &late_) return void(set(&late_));
    auto& slot = *reinterpret_cast<Slot*>(mine);
    if (++slot.calls <= kCallsThatKeep || !mine->is_over()) return void(set(mine));
    set(&late_);
    give_back(slot);
  }

  // Without a lock, so a fork may come at any time: the child loses what other threads had.
  static Slot* free_slot() {
    for (Chunk* chunk = &first_;;) {
      for (Slot& slot : chunk->slots) {
        // Acquire: pairs with give_back().
        if (!slot.taken.load(std::memory_order_relaxed) &&
            !slot.taken.exchange(true, std::memory_order_acquire))
          return &slot;
      }
      // Acquire: pairs with appended().
      Chunk* const next = chunk->next.load(std::memory_order_acquire);
      chunk = next != nullptr ? next : appended(*chunk);
      if (chunk == nullptr) return nullptr;
    }
  }
  static void give_back(Slot& slot) { slot.taken.store(false, std::memory_order_release); }

  // Behind that one, which was the last: one more, or the one that another thread was quicker with.
  static Chunk* appended(Chunk& last) {
    const std::size_t bytes = align_up(sizeof(Chunk), page_bytes());
    void* const space = map(bytes, page_bytes());
    if (space == nullptr) return nullptr;
    Chunk* const mine = ::new (space) Chunk;
    Chunk* next = nullptr;
    // Release and acquire: a thread that finds the chunk finds its slots.
    if (last.next.compare_exchange_strong(next, mine, std::memory_order_acq_rel)) return mine;
    unmap(space, bytes);
    return next;
  }

  static inline constinit std::atomic<std::uint64_t> key_{kNoKey};
  static inline constinit Chunk first_{};
  static inline constinit T late_ = T::late();
};

}  // namespace hz::os
