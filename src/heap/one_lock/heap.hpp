// SPDX-License-Identifier: Apache-2.0
//
// A heap of one lock: the functions that programs call. No thread keeps anything: every call takes the lock,
// finds its slot or its block by its address, and leaves. Called by src/export; costs ten times as much as a
// line with caches, and no less with more threads, but all of it is in a few short files.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstring>

#include "box/guard/report.hpp"
#include "heap/of_line.hpp"
#include "heap/one_lock/recovery.hpp"
#include "heap/settings/control.hpp"

namespace hz::one_lock {

template <class Line>
struct Heaps;
template <class Line>
struct Library;
template <class Line>
struct LayoutOf;

// `Line` has kName, its presets, and kRetain and kFloor: how much free memory keeps its pages, in per cent of
// what lives (100: no more than the floor), and bytes that may in any case.
template <class Line>
struct Heap {
  using Hold = HeapLock::Hold;

  // --- allocate

  static void* malloc(std::size_t size) {
    bool zeroed = false;
    return allocate(bin_for(size), size, 1, zeroed);
  }
  static void* aligned(std::size_t alignment, std::size_t size) {
    bool zeroed = false;
    return allocate(aligned_bin(size == 0 ? 1 : size, alignment), size, alignment, zeroed);
  }
  static void* aligned_beside(const void*, std::size_t alignment, std::size_t size) {
    return aligned(alignment, size);
  }
  static void* calloc(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    bool zeroed = false;
    void* block = allocate(bin_for(bytes), bytes, 1, zeroed);
    return block == nullptr || zeroed ? block : std::memset(block, 0, bytes);
  }
  // A block whose `size` bytes read as zero. `alignment` is a power of two.
  static void* zeroed(std::size_t alignment, std::size_t size) {
    bool zeroed = false;
    void* block = allocate(aligned_bin(size == 0 ? 1 : size, alignment), size, alignment, zeroed);
    return block == nullptr || zeroed ? block : std::memset(block, 0, size);
  }
  // Leaves a block in place down to half of its size.
  static void* realloc(void* block, std::size_t size) {
    if (block == nullptr) return malloc(size);
    if (size == 0) return free(block), nullptr;
    const std::size_t old_size = usable_size(block);  // reports what is no block
    if (old_size == 0) return no_memory();
    if (size <= old_size && size >= old_size / 2) return block;
    if (old_size > kLongest && size > old_size) {
      if (void* grown = grow(block, old_size, size)) return grown;
    }
    void* moved = malloc(size);
    if (moved == nullptr) return size <= old_size ? kept(block, size) : nullptr;
    std::memcpy(moved, block, size < old_size ? size : old_size);
    free(block);
    return moved;
  }
  // There is nothing to be had without the lock.
  static void* at_hand(std::size_t) { return nullptr; }
  static void* at_hand(std::size_t, std::size_t) { return nullptr; }
  static constexpr std::size_t kMostTried = SIZE_MAX, kMostSized = SIZE_MAX;
  static void* at_hand_up_to(std::size_t, std::size_t) { return nullptr; }

  // --- free

  static void free(void* block) {
    if (block != nullptr) release(block, [](const Found&) {});
  }
  // The caller says how large the block was asked to be; whether it may be smaller than that, because realloc
  // leaves a block in place down to half.
  static constexpr bool kExact = false, kAfterRealloc = true;

  HZ_SLOW static void free_sized(void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    if (block == nullptr) return;
    if (alignment == 0) alignment = 1;  // as aligned_alloc takes it
    release(block, [=](Found& found) {
      if (!fits(found, size, alignment, shrunk)) found.why = Fault::kSizeMismatch;
    });
  }
  static void free_exact(void* block, std::size_t size, std::size_t alignment) {
    free_sized(block, size, alignment, kExact);
  }
  // `otherwise` where `most()` is 0: the caller asks first. Two classes are at least kMinAlign bytes
  // apart, and at least a sixteenth.
  template <class Most, class Otherwise>
  static void free_sized_up_to(Most most, void* block, std::size_t size, std::size_t alignment,
                               Otherwise otherwise) {
    if (HZ_UNLIKELY(most() == 0)) return otherwise();
    if (block == nullptr) return;
    release(block, [=](Found& found) {
      const std::size_t unused = found.bytes - size;
      const bool same_class = (unused < kMinAlign || unused < found.bytes / 16) &&
                              (alignment <= kMinAlign || (found.bytes & (alignment - 1)) == 0);
      if (!same_class && !fits(found, size, alignment, kExact)) found.why = Fault::kSizeMismatch;
      std::atomic_signal_fence(std::memory_order_seq_cst);  // reads it again: no register is saved for it
    });
  }

  // --- ask

  // Bytes usable in a live block; 0 after a report if it is none.
  static std::size_t usable_size(const void* block) {
    if (block == nullptr) return 0;
    const Found found = find(block);
    if (found.why != Fault::kNone) return report(found.why, block, found.bin), 0;
    return found.bytes;
  }
  // No block has more or less later than at first.
  static std::size_t resize_in_place(void* block, std::size_t) { return usable_size(block); }
  // Returns false: where the next block comes to lie is not chosen by what lies there.
  static bool defrag_hint(const void* block) { return usable_size(block), false; }
  // What would be usable in a block of that size and alignment, a power of two; 0: there is no such block.
  static std::size_t good_size(std::size_t alignment, std::size_t size) {
    if (size > PTRDIFF_MAX - kGranule || alignment > PTRDIFF_MAX) return 0;
    return usable(aligned_bin(size == 0 ? 1 : size, alignment), size);
  }
  // Blocks have all of their slots.
  static constexpr bool kExactSizes = false;
  // A block that becomes smaller where it is, for want of memory.
  static void* kept(void* block, std::size_t) {
    FaultReport::keep(block);
    return block;
  }
  // No block has no byte here.
  static constexpr bool is_empty(const void*) { return false; }
  // Returns true if a slot begins there, live or free.
  static bool owns(const void* at) { return bytes_at(at) != 0; }
  // Bytes of what begins there, live or free; 0 where nothing of ours does. Reports nothing.
  static std::size_t bytes_at(const void* at) {
    const Found found = find(at);
    return found.why == Fault::kNone || found.why == Fault::kDoubleFree ? found.bytes : 0;
  }
  // What a free would find wrong with it; reports nothing.
  static Fault check(const void* at) { return find(at).why; }
  static bool trim(std::size_t pad) {
    const Hold hold;
    Spans::end_empty();
    return Regions::purge(pad);
  }

 private:
  friend struct Heaps<Line>;
  friend struct Library<Line>;
  friend struct LayoutOf<Line>;

  static Bin bin_for(std::size_t size) {
    return size == 0 ? 1 : size <= kLongest ? scan_bin(size) : kHugeBin;
  }
  // The smallest class whose slots all lie on multiples of `alignment`, or can.
  static Bin aligned_bin(std::size_t size, std::size_t alignment) {
    if (size > kLongest || alignment > kRegion / 2) return kHugeBin;
    if (size > kMediumMax || alignment > kGranule) {
      const Bin bin = bin_for(size > kMediumMax ? size : kMediumMax + 1);
      return alignment <= kGranule || alignment + slot_size(bin) <= kRegion ? bin : kHugeBin;
    }
    Bin bin = bin_for(size < alignment ? alignment : size);
    while ((size_of_bin(bin) & (alignment - 1)) != 0) ++bin;
    return bin;
  }
  static std::size_t usable(Bin bin, std::size_t size) {
    return bin == kHugeBin ? HugeBlocks::usable(size) : size_of_bin(bin);
  }

  static void* allocate(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed) {
    if (HZ_UNLIKELY(!is_open.load(std::memory_order_acquire))) open();  // acquire: pairs with open()
    if (size > PTRDIFF_MAX) return no_memory();
    void* block = nullptr;
    {
      const Hold hold;
      zeroed = bin == kHugeBin;
      block = bin == kHugeBin ? HugeBlocks::take(size, alignment)
                              : Spans::take(bin, (alignment + kGranule - 1) / kGranule, zeroed);
      if (block != nullptr) counts.allocated(bin, usable(bin, size));
    }
    return block != nullptr ? block : no_memory();
  }
  // A huge block with more bytes, where it is or elsewhere; nullptr if it stays as it is.
  static void* grow(void* block, std::size_t old_size, std::size_t size) {
    const Hold hold;
    void* const grown = HugeBlocks::grow(block, size);
    if (grown != nullptr) counts.grown(HugeBlocks::usable(size) - old_size);
    return grown;
  }

  // What lies at an address, live or not. It is kForeign if it never was ours.
  static Found route(const void* block) {
    const std::uintptr_t at = address(block);
    switch (Table::kind(at)) {
      case Table::Kind::kSpans: return Regions::find(at);
      case Table::Kind::kHuge:
      case Table::Kind::kHugeRest: return HugeBlocks::find(at);
      case Table::Kind::kGone: return Found::nothing(Fault::kNotAllocated);
      case Table::Kind::kNothing: break;
    }
    return Found::nothing(Fault::kForeign);
  }
  static Found find(const void* at) {
    const Hold hold;
    return route(at);
  }

  // Returns true if a block that was asked for with that size lies in such a slot, or in such a run.
  HZ_SLOW static bool fits(const Found& found, std::size_t size, std::size_t alignment, bool shrunk) {
    const std::size_t bytes = found.bytes;
    if (found.bin == kHugeBin)
      return size <= bytes && (bytes - size <= kGranule || (shrunk && size >= bytes / 2));
    const Bin asked = alignment > kMinAlign ? aligned_bin(size == 0 ? 1 : size, alignment) : bin_for(size);
    return asked <= found.bin && (asked == found.bin || (shrunk && size >= bytes / 2));
  }
  // `judge` says in `why` if the block is not as large as its owner believes.
  template <class Judge>
  HZ_INLINE static void release(void* block, Judge judge) {
    Found found;
    {
      const Hold hold;
      found = route(block);
      if (found.why == Fault::kNone) {
        judge(found);
        take_back(block, found);
      }
    }
    // A handler of SIGABRT may allocate, free and fork: the lock is open.
    if (HZ_UNLIKELY(found.why != Fault::kNone)) report(found.why, block, found.bin);
  }
  HZ_SLOW static void take_back(const void* block, const Found& found) {
    counts.freed(found.bin, found.bytes);
    found.bin == kHugeBin ? HugeBlocks::put(block) : Spans::put(found);
    if (HZ_LIKELY(Account::dirty_bytes + Spans::empty * kGranule <= most_dirty())) return;
    Spans::end_empty();
    Regions::purge(most_dirty() / 2, kPurgedAtOnce);
  }
  // By one free, and less than a region more: the next ones go on.
  static constexpr std::size_t kPurgedAtOnce = kRegion;
  static std::size_t most_dirty() {
    const std::size_t share = counts.live / 100 * (retain - 100);
    const std::size_t most = share > floor ? share : floor;
    if (HZ_LIKELY(Account::held_bytes() <= Account::limits.soft)) return most;
    const std::size_t few = Account::limits.soft / MemoryLimits::kStepShare;
    return most < few ? most : few;
  }

  HZ_COLD static void report(Fault fault, const void* block, Bin bin) {
    open();
    FaultReport::send(fault, block, bin, Line::kName, Seen::kNow);
  }
  HZ_COLD static void* no_memory() {
    errno = ENOMEM;
    return nullptr;
  }

  // --- start

  // The first thread to come reads what the user says. The first one in the child of a fork may have to start
  // control's thread again.
  HZ_COLD static void open() {
    if (read_options()) os::set_fork_hooks(&HeapLock::before_fork, &HeapLock::after_fork, &in_child);
    if (HZ_UNLIKELY(Control::is_missing()) && HeapLock::mine().fork == HeapLock::Fork::kNone)
      Control::start();
  }
  static void in_child() {
    opening.reset();
    HeapLock::in_child();
    os::note_process();
    Control::begin_process();
    is_open.store(false, std::memory_order_relaxed);
  }
  // Returns true the first time.
  static bool read_options() {
    const os::Guarded once(opening);
    if (is_open.load(std::memory_order_relaxed)) return false;
    if (was_open) {
      const Hold hold;
      Spans::inherit();
      is_open.store(true, std::memory_order_release);  // as below
      return false;
    }
    was_open = true;
    options.read();
    os::prefer_huge_pages(options.huge_pages);
    os::name_mappings(options.name_mappings);
    os::Lock::know_processors(os::usable_cpus());
    os::note_process();
    if (options.stats != StatsFormat::kNone) os::keep_error_stream();
    FaultReport::set_on_invalid(options.report_only);
    const Preset* const preset = preset_among(Line::kPresets, options.preset);
    if (preset != nullptr) {
      retain = preset->retain;
      floor = preset->floor;
    }
    options.warn_of_lacks(Line::kName, preset);
    if (options.retain != 0) retain = options.retain;
    if (options.retain_floor != RetainSettings::kUsual) floor = options.retain_floor;
    Account::limits.set(options.limit_soft, options.limit_hard);
    Spans::open();
    is_open.store(true, std::memory_order_release);  // pairs with allocate()
    return true;
  }

  static inline constinit os::LockOf<os::Rank::kOpening> opening;
  static inline constinit std::atomic<bool> is_open{false};
  static inline constinit bool was_open = false;  // in the process that this one is a fork of
  static inline constinit Options options;
  static inline constinit std::size_t retain = Line::kRetain, floor = Line::kFloor;
  static inline constinit Counts counts = {};
};

}  // namespace hz::one_lock
