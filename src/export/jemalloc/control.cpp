// SPDX-License-Identifier: Apache-2.0
//
// mallctl: jemalloc's names for what one can ask of a heap, tell it and have it do. doc/jemalloc.md says what
// each means here. What has no counterpart, or could not be true, has no row and is ENOENT. Called by
// programs, some of them ten times a second; an epoch costs most (figures.hpp).
//
// There is one heap. It is arena 0, and all arenas together; an arena that a program creates is a number, and
// nothing ever comes from it.
#include <array>
#include <atomic>

#include "export/jemalloc/figures.hpp"
#include "export/jemalloc/heap.hpp"
#include "export/jemalloc/names.hpp"

namespace hz::jemalloc {

namespace {

using Q = const Question&;
using Text = const char*;

constexpr std::size_t kAllArenas = 4096;  // MALLCTL_ARENAS_ALL
constexpr unsigned kMostArenas = 4094;    // that flags of 12 bits can name
constinit std::atomic<unsigned> arenas{1};

unsigned arena_count() { return arenas.load(std::memory_order_relaxed); }

// Classes of small and medium blocks are jemalloc's bins, those of large ones its large extents. The spare
// ones, which no size has at first, are neither: a list that a program has read must stay true.
constexpr std::size_t count_bins() {
  std::size_t count = 0;
  for (Bin bin = 1; bin <= kLastMediumBin; ++bin) count += is_spare(bin) ? 0 : 1;
  return count;
}
constexpr std::size_t kSlabBins = count_bins();
constexpr auto kBinAt = [] {
  std::array<Bin, kSlabBins> bins{};
  std::size_t count = 0;
  for (Bin bin = 1; bin <= kLastMediumBin; ++bin)
    if (!is_spare(bin)) bins[count++] = bin;
  return bins;
}();
constexpr std::size_t kLargeBins = kLastBin - kLastMediumBin;

// Kinds of numbers in names: an arena, by jemalloc's old and new ways to say all of them; a bin; a large
// extent.
bool there_is(char kind, std::size_t number) {
  if (kind == 'b') return number < kSlabBins;
  if (kind == 'l') return number < kLargeBins;
  return number <= arena_count() || number == kAllArenas;
}

template <class T, T kValue>
int constant(Q q) {
  return q.tell_only(kValue);
}
template <bool kValue>
constexpr auto flag = &constant<bool, kValue>;

template <Figure kFigure>
int figure(Q q) {
  return q.tell_only(Figures::of(kFigure));
}
// Of an arena, in these units: what the heap has, or nothing.
bool has_all(Q q) { return q.numbers[0] == 0 || q.numbers[0] >= arena_count(); }
template <Figure kFigure, std::size_t kUnit = 1>
int arena_figure(Q q) {
  return q.tell_only(has_all(q) ? Figures::of(kFigure) / kUnit : 0);
}
// Of classes in a row, and of huge blocks with the last.
template <Bin kFirst, Bin kLast>
int arena_slots(Q q) {
  if (!has_all(q)) return q.tell_only(std::size_t{0});
  return q.tell_only(Figures::slot_bytes(kFirst, kLast) +
                     (kLast == kLastBin ? Figures::of(Figure::kHuge) : 0));
}

int do_nothing(Q q) { return q.reads() || q.writes() ? EPERM : 0; }
int purge(Q q) {
  if (q.reads() || q.writes()) return EPERM;
  hz_trim(0);
  return 0;
}
int flush_cache(Q q) {
  if (q.reads() || q.writes()) return EPERM;
  give_up_cache();
  return 0;
}

int epoch(Q q) {
  std::uint64_t any = 0;
  if (const int error = q.take(any)) return error;
  if (q.fresh != nullptr) Figures::begin_epoch();
  return q.tell(Figures::epoch());
}

// Reads a value. Accepts a write of the same value.
template <class T>
int settled(Q q, T value, int refusal) {
  T asked = value;
  if (const int error = q.take(asked)) return error;
  if (asked != value) return refusal;
  return q.tell(value);
}
int background_thread(Q q) { return settled(q, has_background(), EFAULT); }
int thread_cache_enabled(Q q) { return settled(q, true, EFAULT); }
int most_background_threads(Q q) { return settled(q, std::size_t{1}, EINVAL); }
int profiling(Q q) { return settled(q, false, ENOENT); }

// Accepts another arena for the thread, without effect.
int thread_arena(Q q) {
  unsigned asked = 0;
  if (const int error = q.take(asked)) return error;
  return asked < arena_count() ? q.tell(0U) : EFAULT;
}
int create_arena(Q q) {
  if (q.writes()) return EPERM;  // no other functions get memory for us
  if (!q.can_tell<unsigned>()) return EINVAL;
  unsigned number = arena_count();
  do {
    if (number >= kMostArenas) return EAGAIN;
  } while (!arenas.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
  return q.tell(number);
}
int arena_of_block(Q q) {
  const void* block = nullptr;
  if (const int error = q.take(block)) return error;
  return hz_owns(block) != 0 ? q.tell(0U) : EINVAL;
}

// Every cache that a program creates stands for the calling thread's own.
int create_cache(Q q) {
  if (q.writes()) return EPERM;
  return q.can_tell<unsigned>() ? q.tell(0U) : EINVAL;
}
int flush_created_cache(Q q) {
  if (q.reads()) return EPERM;
  unsigned number = 0;
  if (q.fresh == nullptr) return EINVAL;
  if (const int error = q.take(number)) return error;
  if (number != 0) return EFAULT;
  give_up_cache();
  return 0;
}

constexpr Row kRows[] = {
    {"version", [](Q q) { return q.tell_only(Text{kVersion}); }},
    {"epoch", &epoch},
    {"background_thread", &background_thread},
    {"max_background_threads", &most_background_threads},

    {"config.cache_oblivious", flag<false>},
    {"config.debug", flag<kDebug>},
    {"config.fill", flag<false>},
    {"config.lazy_lock", flag<false>},
    {"config.malloc_conf", [](Q q) { return q.tell_only(Text{""}); }},
    {"config.opt_safety_checks", flag<false>},
    {"config.prof", flag<false>},
    {"config.prof_libgcc", flag<false>},
    {"config.prof_libunwind", flag<false>},
    {"config.stats", flag<true>},
    {"config.utrace", flag<false>},
    {"config.xmalloc", flag<false>},

    {"opt.abort", flag<false>},
    {"opt.abort_conf", flag<false>},
    {"opt.background_thread", [](Q q) { return q.tell_only(has_background()); }},
    {"opt.cache_oblivious", flag<false>},
    {"opt.confirm_conf", flag<false>},
    {"opt.dss", [](Q q) { return q.tell_only(Text{"disabled"}); }},
    {"opt.junk", [](Q q) { return q.tell_only(Text{"false"}); }},
    {"opt.max_background_threads", &constant<std::size_t, 1>},
    {"opt.metadata_thp", [](Q q) { return q.tell_only(Text{"disabled"}); }},
    {"opt.narenas", &constant<unsigned, 1>},
    {"opt.percpu_arena", [](Q q) { return q.tell_only(Text{"disabled"}); }},
    {"opt.prof", flag<false>},
    {"opt.retain", flag<true>},
    {"opt.stats_print", flag<false>},
    {"opt.tcache", flag<true>},
    {"opt.tcache_max", &constant<std::size_t, kLargeMax>},
    {"opt.zero", flag<false>},
    {"opt.zero_realloc", [](Q q) { return q.tell_only(Text{"free"}); }},

    {"thread.arena", &thread_arena},
    {"thread.idle", &flush_cache},
    {"thread.tcache.enabled", &thread_cache_enabled},
    {"thread.tcache.flush", &flush_cache},
    {"tcache.create", &create_cache},
    {"tcache.flush", &flush_created_cache},
    {"tcache.destroy", &flush_created_cache},

    {"arena.%a.initialized", flag<true>},
    {"arena.%a.decay", &do_nothing},
    {"arena.%a.purge", &purge},

    {"arenas.narenas", [](Q q) { return q.tell_only(arena_count()); }},
    {"arenas.quantum", &constant<std::size_t, kMinAlign>},
    {"arenas.page", &constant<std::size_t, kPage>},
    {"arenas.tcache_max", &constant<std::size_t, kLargeMax>},
    {"arenas.nbins", &constant<unsigned, kSlabBins>},
    {"arenas.bin.%b.size", [](Q q) { return q.tell_only(bin_size(kBinAt[q.numbers[0]])); }},
    {"arenas.bin.%b.nregs", [](Q q) { return q.tell_only(std::uint32_t{bin_slots(kBinAt[q.numbers[0]])}); }},
    {"arenas.bin.%b.slab_size", &constant<std::size_t, kGranule>},
    {"arenas.nlextents", &constant<unsigned, kLargeBins>},
    {"arenas.lextent.%l.size", [](Q q) { return q.tell_only(bin_size(kLastMediumBin + 1 + q.numbers[0])); }},
    {"arenas.create", &create_arena},
    {"arenas.lookup", &arena_of_block},

    {"prof.active", &profiling},

    {"stats.allocated", &figure<Figure::kAllocated>},
    {"stats.active", &figure<Figure::kActive>},
    {"stats.metadata", &figure<Figure::kMetadata>},
    {"stats.resident", &figure<Figure::kResident>},
    {"stats.mapped", &figure<Figure::kMapped>},
    {"stats.retained", &figure<Figure::kRetained>},
    {"stats.arenas.%a.nthreads",
     [](Q q) { return q.tell_only(has_all(q) ? static_cast<unsigned>(Figures::of(Figure::kThreads)) : 0U); }},
    {"stats.arenas.%a.pactive", &arena_figure<Figure::kActive, kPage>},
    {"stats.arenas.%a.pdirty", &arena_figure<Figure::kDirty, kPage>},
    {"stats.arenas.%a.pmuzzy", &constant<std::size_t, 0>},  // what goes back goes at once
    {"stats.arenas.%a.mapped", &arena_figure<Figure::kMapped>},
    {"stats.arenas.%a.retained", &arena_figure<Figure::kRetained>},
    {"stats.arenas.%a.resident", &arena_figure<Figure::kResident>},
    {"stats.arenas.%a.small.allocated", &arena_slots<1, kLastMediumBin>},
    {"stats.arenas.%a.large.allocated", &arena_slots<kLastMediumBin + 1, kLastBin>},
    {"stats.arenas.%a.bins.%b.curregs",
     [](Q q) { return q.tell_only(has_all(q) ? Figures::slots(kBinAt[q.numbers[1]]) : 0); }},
    {"stats.arenas.%a.bins.%b.curslabs",
     [](Q q) { return q.tell_only(has_all(q) ? Figures::spans(kBinAt[q.numbers[1]]) : 0); }},
};
constexpr Names kNames(kRows);

}  // namespace

}  // namespace hz::jemalloc

using hz::jemalloc::kNames;
using hz::jemalloc::there_is;

HZ_EXPORT int mallctlnametomib(const char* name, size_t* mibp, size_t* miblenp) {
  return kNames.find(name, mibp, miblenp, there_is);
}
HZ_EXPORT int mallctlbymib(const size_t* mib, size_t miblen, void* oldp, size_t* oldlenp, void* newp,
                           size_t newlen) {
  return kNames.ask(mib, miblen, {oldp, oldlenp, newp, newlen}, there_is);
}
HZ_EXPORT int mallctl(const char* name, void* oldp, size_t* oldlenp, void* newp, size_t newlen) {
  size_t mib[hz::jemalloc::kMostWords], count = hz::jemalloc::kMostWords;
  const int error = kNames.find(name, mib, &count, there_is);
  return error != 0 ? error : kNames.ask(mib, count, {oldp, oldlenp, newp, newlen}, there_is);
}
