// SPDX-License-Identifier: Apache-2.0
//
// Magazines: arrays of slots of one class, in which slots lie where nothing is written into free slots. They
// make up the longer bins of threads, and change hands whole; messages between threads are magazines, too. An
// empty one costs the lock of its processor's store, which keeps a few for the next thread that needs one.
// Memory for them comes from the system by the granule, and a store keeps one granule that is not in use.
// Source of the idea: J. Bonwick, J. Adams, "Magazines and Vmem", 2001.
#pragma once

#include <atomic>
#include <utility>

#include "base/free_list.hpp"
#include "base/layout.hpp"
#include "base/units.hpp"
#include "os/lock.hpp"
#include "os/os.hpp"

namespace hz::os {

template <unsigned kMost>
struct Magazine {
  static constexpr unsigned kSlots = kMost;

  FreeSlot* next;  // a magazine: it begins like a free slot, so that a SharedList chains magazines, too
  std::uint32_t count, bin;
  void* none;  // always null: a pop of an empty bin reads it as the slot below the first one
  void* slots[kSlots];

  Magazine* following() const { return reinterpret_cast<Magazine*>(next); }
  void follow_with(Magazine* magazine) { next = reinterpret_cast<FreeSlot*>(magazine); }
};

template <unsigned kMost>
class MagazineStore {
 public:
  using Magazine = os::Magazine<kMost>;
  static constexpr unsigned kKept = 32;

  // An empty one; nullptr if there is no memory.
  Magazine* take() {
    const Guarded hold(lock_);
    if (Magazine* const kept = kept_) {
      kept_ = kept->following();
      --kept_count_;
      return kept;
    }
    if (partial_ == nullptr && !more()) return nullptr;
    Chunk& chunk = *partial_;
    if (&chunk == unused_) unused_ = nullptr;
    Magazine* magazine = chunk.unused != nullptr ? chunk.unused : chunk.magazines + chunk.reached++;
    if (magazine == chunk.unused) chunk.unused = magazine->following();
    ++chunk.used;
    if (!chunk.has_room()) unlink(chunk);
    return magazine;
  }

  // Of a list, as many as it still has room for, whatever stores they came from, for the next ones to take;
  // the others.
  Magazine* keep(Magazine* first) {
    const Guarded hold(lock_);
    while (first != nullptr && kept_count_ < kKept) {
      Magazine* const kept = std::exchange(first, first->following());
      kept->follow_with(kept_);
      kept_ = kept;
      ++kept_count_;
    }
    return first;
  }
  // All that it kept.
  Magazine* take_kept() {
    const Guarded hold(lock_);
    kept_count_ = 0;
    return std::exchange(kept_, nullptr);
  }

  // A list of them, or none; each to the store that it came from.
  static void give(Magazine* first) {
    while (Magazine* magazine = first) {
      first = magazine->following();
      Chunk& chunk = chunk_of(magazine);
      chunk.home->take_back(chunk, magazine);
    }
  }

  // The granule that it keeps although no magazine of it is in use goes back to the system.
  void shrink() {
    const Guarded hold(lock_);
    if (unused_ != nullptr) drop(*unused_);
    unused_ = nullptr;
  }

  // In a child that another thread's change was cut off in: chunks with room are lost,
  // and what it kept.
  void make_whole() {
    if (!lock_.reset()) return;
    partial_ = unused_ = nullptr;
    kept_ = nullptr;
    kept_count_ = 0;
  }

  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  static constexpr std::size_t offset_of_bytes() { return offsetof(MagazineStore, bytes_); }

 private:
  // A granule. Magazines beyond `reached` were never used, so their pages are not there yet.
  struct Chunk {
    static constexpr unsigned kMagazines = kGranule / sizeof(Magazine) - 1;

    Chunk *next, *previous;  // with room
    MagazineStore* home;
    Magazine* unused;
    unsigned used, reached;
    Magazine magazines[kMagazines];

    bool has_room() const { return unused != nullptr || reached != kMagazines; }
  };
  static_assert(sizeof(Chunk) <= kGranule);

  static Chunk& chunk_of(const Magazine* magazine) {
    return *static_cast<Chunk*>(pointer(address(magazine) & ~(kGranule - 1)));
  }

  void take_back(Chunk& chunk, Magazine* magazine) {
    const Guarded hold(lock_);
    if (!chunk.has_room()) link(chunk);
    magazine->follow_with(chunk.unused);
    chunk.unused = magazine;
    if (--chunk.used != 0) return;
    if (unused_ == nullptr) {
      unused_ = &chunk;
    } else {
      drop(chunk);
    }
  }

  void link(Chunk& chunk) {
    chunk.next = partial_;
    chunk.previous = nullptr;
    if (partial_ != nullptr) partial_->previous = &chunk;
    partial_ = &chunk;
  }
  void unlink(Chunk& chunk) {
    (chunk.previous != nullptr ? chunk.previous->next : partial_) = chunk.next;
    if (chunk.next != nullptr) chunk.next->previous = chunk.previous;
  }
  void drop(Chunk& chunk) {
    unlink(chunk);
    bytes_.fetch_sub(kGranule, std::memory_order_relaxed);
    unmap(&chunk, kGranule);
  }

  bool more() {
    auto* chunk = static_cast<Chunk*>(map(kGranule, kGranule));
    if (chunk == nullptr) return false;
    forbid_huge_pages(chunk, kGranule);
    bytes_.fetch_add(kGranule, std::memory_order_relaxed);
    chunk->home = this;
    link(*chunk);
    return true;
  }

  alignas(64) LockOf<Rank::kMagazines> lock_;
  unsigned kept_count_ = 0;
  Magazine* kept_ = nullptr;
  Chunk* partial_ = nullptr;  // those with room
  Chunk* unused_ = nullptr;   // one of them of which no magazine is in use
  std::atomic<std::size_t> bytes_{0};
};

// Those of one line: its bins and its depot pass the same ones. A store for each processor, so that threads
// seldom wait for each other here.
template <class Line, unsigned kMost>
class Magazines {
 public:
  using Store = MagazineStore<kMost>;
  using Magazine = typename Store::Magazine;

  // nullptr if there is no memory.
  static Magazine* take() { return here().take(); }
  // One, or none.
  static void give(Magazine* magazine) {
    if (magazine == nullptr) return;
    magazine->follow_with(nullptr);
    give_list(magazine);
  }
  static void give_list(Magazine* first) {
    if (first != nullptr) Store::give(here().keep(first));
  }

  static void shrink() {
    for (Store& store : stores_) Store::give(store.take_kept());
    for (Store& store : stores_) store.shrink();
  }
  static std::size_t bytes() {
    std::size_t sum = 0;
    for (const Store& store : stores_) sum += store.bytes();
    return sum;
  }
  // For readers from outside.
  static constexpr auto words() {
    return layout::Words<2>{layout::Word("magazine.store", 0, sizeof(Store), kStores),
                            {"magazine.held", Store::offset_of_bytes()}};
  }
  static constexpr const volatile void* begin_of_words() { return stores_; }

  // In a child that another thread's change was cut off in.
  static void make_whole() {
    for (Store& store : stores_) store.make_whole();
  }

 private:
  static constexpr unsigned kStores = 64;  // on machines with more processors some share one
  static Store& here() { return stores_[current_cpu() % kStores]; }
  static inline constinit Store stores_[kStores];
};

}  // namespace hz::os
