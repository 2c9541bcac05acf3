// SPDX-License-Identifier: Apache-2.0
//
// A heap of one lock, and the library around it. No thread keeps anything: every call takes the lock, finds
// its slot or its block by its address, and leaves. Two to four times the cost of a line with caches where
// nobody else calls, and no faster with more threads; but all of it is in three short files. Called by
// src/export.
#pragma once

#include <cerrno>
#include <cstring>

#include "box/guard/report.hpp"
#include "heap/of_line.hpp"
#include "heap/one_lock/regions.hpp"
#include "heap/settings/control.hpp"
#include "heap/settings/stats_line.hpp"

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
  using Hold = Regions::Hold;
  using Route = Regions::Route;
  using Answer = Regions::Answer;

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
  // A block that grows by less than half gets room for as much again, so that a program which adds a little
  // each time moves it seldom; less where addresses are limited.
  static std::size_t room_for(std::size_t size, std::size_t old_size) {
    if (size <= old_size || size - old_size >= old_size / 2) return 0;
    const std::size_t share = os::address_space_limit() == SIZE_MAX ? 1 : kLimitedShare;
    return align_up(size / share, kGranule);
  }
  static constexpr std::size_t kLimitedShare = 8;
  // A huge block with more bytes, where it is or elsewhere; nullptr if it stays as it is.
  static void* grow(void* block, std::size_t old_size, std::size_t size) {
    Hold hold;
    void* const grown = Regions::grow_huge(hold, block, size)
                            ? block
                            : Regions::move_huge(hold, block, size, room_for(size, old_size));
    if (grown != nullptr) counts.grown(Regions::usable(size) - old_size);
    return grown;
  }
  // There is nothing to be had without the lock.
  static void* at_hand(std::size_t) { return nullptr; }
  static void* at_hand(std::size_t, std::size_t) { return nullptr; }
  static constexpr std::size_t kMostTried = SIZE_MAX, kMostSized = SIZE_MAX;
  static void* at_hand_up_to(std::size_t, std::size_t) { return nullptr; }

  // --- free

  static void free(void* block) {
    if (block != nullptr) release(block, [](const Route&) {});
  }
  // The caller says how large the block was asked to be; whether it may be smaller than that, because realloc
  // leaves a block in place down to half.
  static constexpr bool kExact = false, kAfterRealloc = true;

  HZ_SLOW static void free_sized(void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    if (block == nullptr) return;
    if (alignment == 0) alignment = 1;  // as aligned_alloc takes it
    release(block, [=](Route& r) {
      if (!fits(r, size, alignment, shrunk)) r.why = Fault::kSizeMismatch;
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
    release(block, [=](Route& r) {
      const std::size_t unused = r.bytes - size;
      const bool same_class = (unused < kMinAlign || unused < r.bytes / 16) &&
                              (alignment <= kMinAlign || (r.bytes & (alignment - 1)) == 0);
      if (!same_class && !fits(r, size, alignment, kExact)) r.why = Fault::kSizeMismatch;
      std::atomic_signal_fence(std::memory_order_seq_cst);  // reads r again: no register is saved for it
    });
  }

  // --- ask

  // Bytes usable in a live block; 0 after a report if it is none.
  static std::size_t usable_size(const void* block) {
    if (block == nullptr) return 0;
    const Route r = route(block);
    if (r.answer != Answer::kValid) return report(r.why, block, r.bin), 0;
    return r.bytes;
  }
  // No block has more or less later than at first.
  static std::size_t resize_in_place(void* block, std::size_t) { return usable_size(block); }
  // Returns false: where the next block comes to lie is not chosen by what lies there.
  static bool defrag_hint(const void* block) { return usable_size(block), false; }
  // What would be usable in a block of that size and alignment, a power of two; 0: there is no such block.
  static std::size_t good_size(std::size_t alignment, std::size_t size) {
    if (size > PTRDIFF_MAX - kGranule || alignment > PTRDIFF_MAX) return 0;
    const Bin bin = aligned_bin(size == 0 ? 1 : size, alignment);
    return bin == kHugeBin ? Regions::usable(size) : size_of_bin(bin);
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
  // Whether a slot begins there, live or free.
  static bool owns(const void* at) {
    const Route r = route(at);
    return r.answer == Answer::kValid || r.why == Fault::kDoubleFree;
  }
  // Bytes of what begins there, live or free; 0 where nothing of ours does. Reports nothing.
  static std::size_t bytes_at(const void* at) {
    const Route r = route(at);
    return r.answer == Answer::kValid || r.why == Fault::kDoubleFree ? r.bytes : 0;
  }
  // What a free would find wrong with it; reports nothing.
  static Fault check(const void* at) {
    const Route r = route(at);
    return r.answer == Answer::kValid ? Fault::kNone : r.why;
  }
  static Route route(const void* at) {
    const Hold hold;
    return Regions::route(at);
  }
  static bool trim(std::size_t pad) {
    Hold hold;
    Regions::end_empty_spans();
    return Regions::purge(hold, pad);
  }

 private:
  friend struct Heaps<Line>;
  friend struct Library<Line>;
  friend struct LayoutOf<Line>;

  // By one free, and less than a region more: the next ones go on.
  static constexpr std::size_t kPurgedAtOnce = kRegion;

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

  static void* allocate(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed) {
    if (HZ_UNLIKELY(!is_open.load(std::memory_order_acquire))) open();  // acquire: pairs with open()
    if (size > PTRDIFF_MAX) return no_memory();
    void* block = nullptr;
    {
      Hold hold;
      zeroed = bin == kHugeBin;
      block = bin == kHugeBin ? Regions::take_huge(hold, size, alignment)
                              : Regions::take(hold, bin, (alignment + kGranule - 1) / kGranule, zeroed);
      if (block != nullptr) counts.allocated(bin, bin == kHugeBin ? Regions::usable(size) : size_of_bin(bin));
    }
    return block != nullptr ? block : no_memory();
  }

  // Returns true if a block that was asked for with that size lies in such a slot, or in such a run.
  HZ_SLOW static bool fits(const Route& r, std::size_t size, std::size_t alignment, bool shrunk) {
    if (r.bin == kHugeBin)
      return size <= r.bytes && (r.bytes - size <= kGranule || (shrunk && size >= r.bytes / 2));
    const Bin asked = alignment > kMinAlign ? aligned_bin(size == 0 ? 1 : size, alignment) : bin_for(size);
    return asked <= r.bin && (asked == r.bin || (shrunk && size >= r.bytes / 2));
  }
  // `judge` says in r.why if the block is not as large as its owner believes.
  template <class Judge>
  HZ_INLINE static void release(void* block, Judge judge) {
    Route r;
    {
      Hold hold;
      r = Regions::route(block);
      if (r.answer == Answer::kValid) {
        judge(r);
        counts.freed(r.bin, r.bytes);
        r.bin == kHugeBin ? Regions::put_huge(hold, block) : Regions::put(r);
        if (HZ_UNLIKELY(Regions::dirty_bytes + Regions::empty_spans * kGranule > most_dirty())) {
          Regions::end_empty_spans();
          Regions::purge(hold, most_dirty() / 2, kPurgedAtOnce);
        }
      }
    }
    if (HZ_UNLIKELY(r.why != Fault::kNone)) report(r.why, block, r.bin);
  }
  static std::size_t most_dirty() {
    const std::size_t share = counts.live / 100 * (retain - 100);
    const std::size_t most = share > floor ? share : floor;
    if (HZ_LIKELY(Regions::held_bytes() <= Regions::limits.soft)) return most;
    const std::size_t few = Regions::limits.soft / MemoryLimits::kStepShare;
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

  // What the user says is read once, by whoever comes first; whoever comes first in the child of a fork may
  // have to start control's thread again.
  HZ_COLD static void open() {
    if (read_options()) os::set_fork_hooks(&Regions::before_fork, &Regions::after_fork, &in_child);
    if (HZ_UNLIKELY(Control::is_missing()) && Regions::mine().fork == Regions::Fork::kNone) Control::start();
  }
  static void in_child() {
    opening.reset();
    Regions::in_child();
    os::note_process();
    Control::begin_process();
    if (Control::is_missing()) is_open.store(false, std::memory_order_relaxed);
  }
  // Whether this is the first time.
  static bool read_options() {
    const os::Guarded once(opening);
    if (is_open.load(std::memory_order_relaxed)) return false;
    if (was_open) return is_open.store(true, std::memory_order_relaxed), false;
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
    Regions::open(options.limit_soft, options.limit_hard);
    is_open.store(true, std::memory_order_release);  // pairs with allocate()
    return true;
  }

  struct Counts {
    std::uint64_t allocs[3], frees[3];  // small, medium, large
    std::size_t live, peak;

    void allocated(Bin bin, std::size_t bytes) {
      ++allocs[kind(bin)];
      live += bytes;
      if (live > peak) peak = live;
    }
    void freed(Bin bin, std::size_t bytes) {
      ++frees[kind(bin)];
      live -= bytes;
    }
    void grown(std::size_t bytes) {
      live += bytes;
      if (live > peak) peak = live;
    }
    static unsigned kind(Bin bin) { return bin <= kLastSmallBin ? 0 : bin <= kLastMediumBin ? 1 : 2; }
  };

  static inline constinit os::Lock opening;
  static inline constinit std::atomic<bool> is_open{false};
  static inline constinit bool was_open = false;  // in the process that this one is a fork of
  static inline constinit Options options;
  static inline constinit std::size_t retain = Line::kRetain, floor = Line::kFloor;
  static inline constinit Counts counts = {};
};

// There are no first-class heaps, so no handle is one of a heap.
template <class Line>
struct Heaps {
  static HeapHandle begin() {
    errno = ENOSYS;
    return 0;
  }
  static void* malloc(HeapHandle handle, std::size_t) { return refuse(handle); }
  static void* allocate(HeapHandle handle, std::size_t, std::size_t) { return refuse(handle); }
  static void* zeroed(HeapHandle handle, std::size_t, std::size_t) { return refuse(handle); }
  static void* realloc(HeapHandle handle, const void*, std::size_t) { return refuse(handle); }
  static void destroy(HeapHandle handle) { refuse(handle); }
  static void remove(HeapHandle handle) { refuse(handle); }

 private:
  static void* refuse(HeapHandle handle) {
    Heap<Line>::report(Fault::kNoHeap, pointer(handle), 0);
    errno = EINVAL;
    return nullptr;
  }
};

// Blocks cannot be walked over.
template <class Line>
struct Walk {
  static int all(auto, void*) { return refuse(); }
  static int of_heap(HeapHandle, auto, void*) { return refuse(); }
  static int figures(HeapHandle, const auto&) { return refuse(); }

 private:
  static int refuse() {
    errno = ENOSYS;
    return -1;
  }
};

// What the library does beside allocating.
template <class Line>
struct Library {
  using H = Heap<Line>;
  using Hold = Regions::Hold;

  static void at_load() {
    H::open();
    if (prints_stats()) os::before_termination(&print_last);
  }
  static void at_exit() {
    if (prints_stats()) print_last();
  }
  static void prepare_thread() {}
  static bool redirects() {
    H::open();
    return H::options.redirect;
  }
  static void before_load() {}
  static bool keeps_deepbind() {
    H::open();
    return H::options.keep_deepbind;
  }

  static bool write_profile() { return false; }  // it has no policy
  // Every free would have to ask whether its block is a sample.
  static bool write_heap_profile(const char*) { return false; }

  static hz_stats_t stats() {
    const Hold hold;
    return read();
  }
  static void print_stats(StatsFormat format) {
    os::LongMessage m;
    compose_stats(m, Line::kName, stats(), format, false).send();
  }
  static std::size_t huge_blocks() { return Regions::huge_blocks; }
  static std::size_t runs() { return Regions::huge_blocks; }
  static std::size_t huge_bytes() { return Regions::huge_live; }
  static void set_floor(std::size_t bytes) {
    const Hold hold;
    H::floor = bytes;
  }

  // --- for Control

  static Options settings() {
    H::open();
    Options now = H::options;
    now.report_only =
        FaultReport::on_invalid.load(std::memory_order_relaxed) == FaultReport::OnInvalid::kReport;
    const Hold hold;
    now.retain = H::retain;
    now.retain_floor = H::floor;
    const Limits limits = Regions::limits.now();
    now.limit_soft = limits.soft;
    now.limit_hard = limits.hard;
    return now;
  }
  static const char* lacks(Setting setting) {
    return setting == Setting::kThreadCache   ? "no thread of this line caches anything"
           : setting == Setting::kLearning    ? "this line has no policy"
           : setting == Setting::kHeapProfile ? "this line keeps no heap profile"
           : setting == Setting::kGuardSample ? "this line has no guarded pages"
                                              : nullptr;
  }
  static Outcome change(Setting setting, const Options&, const Options& wanted) {
    if (setting == Setting::kOnInvalid) FaultReport::set_on_invalid(wanted.report_only);
    const Hold hold;
    if (setting == Setting::kRetain) H::retain = wanted.retain;
    if (setting == Setting::kRetainFloor) H::floor = wanted.retain_floor;
    if (setting == Setting::kLimitSoft) Regions::limits.set(wanted.limit_soft, {});
    if (setting == Setting::kLimitHard) Regions::limits.set({}, wanted.limit_hard);
    return {0, ""};
  }
  static Outcome act(Action action) {
    switch (action) {
      case Action::kTrim: return {0, H::trim(0) ? "1" : "0"};
      case Action::kPurge: {
        Hold hold;
        return {0, Regions::purge(hold, 0) ? "1" : "0"};
      }
      case Action::kWriteStats: print_last(); return {0, "1"};
      case Action::kWriteProfile: break;
      case Action::kWriteHeapProfile: return {ENOTSUP, "this line keeps no heap profile"};
    }
    return {ENOTSUP, "this line has no policy"};
  }
  static void begin_thread() {}
  static os::LongMessage& compose(os::LongMessage& message) {
    return compose_stats(message, Line::kName, stats(), StatsFormat::kText, false);
  }

 private:
  static constexpr unsigned kPatience = 100;  // milliseconds

  static bool prints_stats() { return H::options.stats != StatsFormat::kNone; }

  // Perhaps in a signal handler, or called by one: what the thread was at that it interrupted may have the
  // lock.
  static void print_last() {
    const Regions::Look look(kPatience);
    os::LongMessage m;
    compose_stats(m, Line::kName, read(), H::options.stats, !look.has_lock()).send_as_statistics();
  }
  static hz_stats_t read() {
    const auto& counts = H::counts;
    hz_stats_t s = {};
    s.counting = 1;
    s.alloc_small = counts.allocs[0];
    s.alloc_medium = counts.allocs[1];
    s.alloc_large = counts.allocs[2];
    s.free_small = counts.frees[0];
    s.free_medium = counts.frees[1];
    s.free_large = counts.frees[2];
    s.spans_acquired = Regions::begun;
    s.spans_retired = Regions::ended;
    s.purges = Regions::purges;
    s.bytes_held = s.bytes_live = counts.live;
    s.bytes_dirty = Regions::dirty_bytes;
    s.bytes_purged = Regions::purged_bytes;
    s.bytes_metadata = Regions::metadata_bytes();
    s.bytes_peak = counts.peak;
    return s;
  }
};

}  // namespace hz::one_lock
