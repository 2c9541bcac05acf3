// SPDX-License-Identifier: Apache-2.0
//
// Crates: arrays of slots of one class, in which slots wait where nothing is written into free slots. Used by the
// magazine depot and by messages between threads. A crate costs one lock and one copy of its slots; memory for
// crates comes from the system by the granule, and stays until somebody shrinks the store.
#pragma once

#include <atomic>

#include "base/free_list.hpp"
#include "base/units.hpp"
#include "os/lock.hpp"

namespace hz::os {

template <unsigned kMost>
struct Crate {
  static constexpr unsigned kSlots = kMost;

  FreeSlot* next;  // a crate: it begins like a free slot, so that a SharedList chains crates, too
  std::uint32_t count, bin;
  void* slots[kSlots];

  Crate* following() const { return reinterpret_cast<Crate*>(next); }
  void follow_with(Crate* crate) { next = reinterpret_cast<FreeSlot*>(crate); }
};

template <unsigned kMost>
class CrateStore {
 public:
  using Crate = os::Crate<kMost>;

  // An empty one; nullptr if there is no memory.
  Crate* take() {
    const Guarded hold(lock_);
    if (partial_ == nullptr && !more()) return nullptr;
    Chunk& chunk = *partial_;
    Crate* crate = chunk.unused != nullptr ? chunk.unused : chunk.crates + chunk.reached++;
    if (crate == chunk.unused) chunk.unused = crate->following();
    ++chunk.used;
    if (!chunk.has_room()) partial_ = chunk.next;
    return crate;
  }

  // A list of them, or none.
  void give(Crate* first) {
    if (first == nullptr) return;
    const Guarded hold(lock_);
    while (Crate* crate = first) {
      first = crate->following();
      Chunk& chunk = chunk_of(crate);
      if (!chunk.has_room()) {
        chunk.next = partial_;
        partial_ = &chunk;
      }
      crate->follow_with(chunk.unused);
      chunk.unused = crate;
      --chunk.used;
    }
  }

  // What no crate is in use of goes back to the system.
  void shrink() {
    const Guarded hold(lock_);
    for (Chunk** link = &partial_; *link != nullptr;) {
      Chunk* chunk = *link;
      if (chunk->used == 0) {
        *link = chunk->next;
        bytes_.fetch_sub(kGranule, std::memory_order_relaxed);
        unmap(chunk, kGranule);
      } else {
        link = &chunk->next;
      }
    }
  }

  // In a child that another thread's change was cut off in: chunks with room are lost.
  void make_whole() {
    if (lock_.reset()) partial_ = nullptr;
  }

  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A granule. Crates beyond `reached` were never used, so their pages are not there yet.
  struct Chunk {
    static constexpr unsigned kCrates = kGranule / sizeof(Crate) - 1;

    Chunk* next;  // with room
    Crate* unused;
    unsigned used, reached;
    Crate crates[kCrates];

    bool has_room() const { return unused != nullptr || reached != kCrates; }
  };
  static_assert(sizeof(Chunk) <= kGranule);

  static Chunk& chunk_of(const Crate* crate) { return *static_cast<Chunk*>(pointer(address(crate) & ~(kGranule - 1))); }

  bool more() {
    void* chunk = map(kGranule, kGranule);
    if (chunk == nullptr) return false;
    forbid_huge_pages(chunk, kGranule);
    bytes_.fetch_add(kGranule, std::memory_order_relaxed);
    partial_ = static_cast<Chunk*>(chunk);
    return true;
  }

  alignas(64) Lock lock_;
  Chunk* partial_ = nullptr;  // those with room
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace hz::os
