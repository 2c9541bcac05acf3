// SPDX-License-Identifier: Apache-2.0
//
// All regions and all huge blocks: where granules come from and go to, what an address belongs to, and what
// the system gets back. All of it is under one lock, which is open while the system works. Called by
// heap.hpp.
//
//   table   one byte for each 4 MiB of the address space: what lies there is known before it is read
//   huge    a block with a mapping of its own. Its notes stand at the start of its first 4 MiB, the block
//           begins at the next granule, or where its alignment wants it
//   purge   free granules keep their pages until there are more than may be; what was freed longest ago goes
//           first, and a region without spans is unmapped
#pragma once

#include <atomic>
#include <new>

#include "box/source/memory_limits.hpp"
#include "heap/one_lock/region.hpp"
#include "os/lock.hpp"
#include "os/per_thread.hpp"
#include "os/probe.hpp"

namespace hz::one_lock {

struct Regions {
  // The lock, while this lives. A thread that forks has it already: other fork handlers may allocate.
  class Hold {
   public:
    Hold() { close(); }
    ~Hold() { open(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // The lock is open during `work`, which the system does.
    template <class Work>
    auto meanwhile(Work work) {
      begin_work();
      const auto result = work();
      end_work();
      return result;
    }
    void give_way() {
      open();
      os::give_way();
      close();
    }

   private:
    // Functions of their own, as slot_size is. Still inside: a signal handler that forks would wait for the
    // end of this work. In a child that was made whole meanwhile the count begins anew.
    HZ_SLOW static void begin_work() {
      ++at_work;
      if (HZ_LIKELY(mine().fork != Fork::kUnderWay)) lock.unlock();
    }
    HZ_SLOW static void end_work() {
      if (HZ_LIKELY(mine().fork != Fork::kUnderWay) && HZ_UNLIKELY(!lock.try_lock())) wait();
      if (HZ_LIKELY(at_work != 0)) --at_work;
    }
    static void close() {
      Thread& thread = mine();
      if (HZ_UNLIKELY(thread.fork != Fork::kNone)) return close_about_a_fork();
      thread.inside = true;
      if (HZ_UNLIKELY(!lock.try_lock())) wait();
    }
    static void open() {
      Thread& thread = mine();
      if (HZ_UNLIKELY(thread.fork == Fork::kUnderWay)) return;
      lock.unlock();
      thread.inside = false;
    }
    HZ_COLD static void close_about_a_fork() {
      Thread& thread = mine();
      if (thread.fork == Fork::kUnderWay) return;
      make_whole();
      thread.inside = true;
      if (!lock.try_lock()) wait();
    }
    // A signal handler may fork meanwhile, and in the child no thread is there to release the lock.
    HZ_SLOW static void wait() {
      if (lock.had_by_spinning()) return;
      while (!lock.lock_within(kWait)) {
        if (mine().fork == Fork::kUnhooked) make_whole();
      }
    }
    static constexpr unsigned kWait = 100;  // milliseconds
  };

  // The same if the lock can be had in that time, for a caller that may be a signal handler of a thread that
  // has it.
  class Look {
   public:
    explicit Look(unsigned most_milliseconds) : was_inside_(mine().inside) {
      mine().inside = true;
      has_ = lock.lock_within(most_milliseconds);
    }
    ~Look() {
      if (has_) lock.unlock();
      mine().inside = was_inside_;
    }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;
    bool has_lock() const { return has_; }

   private:
    const bool was_inside_;
    bool has_ = false;
  };

  // Once, before all else.
  static void open(MemoryLimit soft, MemoryLimit hard) {
    limits.set(soft, hard);
    for (Link& list : with_free_slots) ::new (&list) Link;  // gcc 12 leaves them zero
  }

  // Miss: never ours. Invalid: ours, but no live block, and why not. Valid: a live block.
  enum class Answer : std::uint8_t { kMiss, kInvalid, kValid };
  struct Route {
    Answer answer;
    Fault why;
    Bin bin;            // of what lies there; 0 if that is unknown
    std::size_t bytes;  // usable, of a live block
    Region* region;     // where it lies, unless it is huge
    Span* span;
    unsigned slot;
  };
  static Route route(const void* block) {
    const std::uintptr_t at = address(block);
    switch (kind(at)) {
      case Kind::kSpans: return in_region(at);
      case Kind::kHuge:
      case Kind::kHugeRest: return in_huge(at);
      case Kind::kGone: return {Answer::kInvalid, Fault::kNotAllocated, 0, 0, nullptr, nullptr, 0};
      case Kind::kNothing: break;
    }
    return {Answer::kMiss, Fault::kForeign, 0, 0, nullptr, nullptr, 0};
  }

  // A slot of the class; nullptr when memory cannot be had. `multiple`: its number of granules from the
  // region's start is one of that, a power of two; above 1 only for slots that are all of their span.
  // `zeroed`: it reads as zero.
  static void* take(Hold& hold, Bin bin, std::size_t multiple, bool& zeroed) {
    Link& spans = with_free_slots[bin];
    if (spans.alone() && !begin_span(hold, bin, multiple)) return nullptr;
    Span& span = *static_cast<Span*>(spans.next);
    if (span.used == 0) --empty_spans;
    void* slot = Region::of(address(&span)).take(span, zeroed);
    if (span.used == span.slots) span.remove();
    return slot;
  }
  // A live slot that was routed to is free from now on.
  static void put(const Route& r) {
    Span& span = *r.span;
    if (span.used == span.slots) span.insert(with_free_slots[r.bin]);
    r.region->put(span, r.slot);
    if (span.used != 0) return;
    // Of each class one span of slots stays although it is empty: the next block would begin it again.
    ++empty_spans;
    if (span.next != span.previous || span.slots == 1) end_span(*r.region, span);
  }
  static void end_empty_spans() {
    if (empty_spans == 0) return;
    for (Link& spans : with_free_slots) {
      if (spans.alone()) continue;
      Span& last = *static_cast<Span*>(spans.previous);  // it stayed alone, and others came before it
      if (last.used == 0) end_span(Region::of(address(&last)), last);
    }
  }

  static std::size_t usable(std::size_t huge_size) {
    return align_up(huge_size + (huge_size == 0), os::page_bytes());
  }
  // A block with a mapping of its own, zeroed. `alignment` is a power of two. Nothing that is given up makes
  // room for more than there are addresses. `room`: bytes behind it that it may grow into, if they can be
  // had; they count when it has.
  static void* take_huge(Hold& hold, std::size_t size, std::size_t alignment) {
    if ((size | alignment) >> kAddressBits != 0) return nullptr;
    const std::size_t offset = alignment < kGranule ? kGranule : alignment < kRegion ? alignment : kRegion;
    const std::size_t usable_bytes = usable(size), bytes = offset + usable_bytes;
    if (held_bytes() + bytes > limits.soft) pay(hold, held_bytes() + bytes, bytes);
    for (unsigned rounds = 0;;) {
      void* start = nullptr;
      if (held_bytes() + bytes <= limits.hard) {
        huge_bytes += bytes;
        start = hold.meanwhile([&] { return map_huge(bytes, offset, alignment); });
        if (start != nullptr && mark_huge(start, bytes)) {
          ++huge_blocks;
          ++begun;
          os::probe::span_acquired(address(start), bytes);
          huge_live += usable_bytes;
          return pointer((::new (start) Huge{address(start) + offset, usable_bytes, bytes, 0})->block);
        }
        huge_bytes -= bytes;
      } else {
        os::probe::limit(os::probe::Limit::kHard, bytes);
      }
      if (start != nullptr) {  // no memory for the table
        mark(address(start), regions_in(bytes), Kind::kGone);
        return hold.meanwhile([&] { return os::unmap(start, bytes); }), nullptr;
      }
      if (!gave_way(hold, rounds)) return nullptr;
    }
  }
  // Gives a live huge block more bytes of its room. False: there are not as many, or there is no memory.
  static bool grow_huge(Hold& hold, const void* block, std::size_t size) {
    const std::size_t more = usable(size) - notes_of(address(block)).usable;
    if (more > notes_of(address(block)).room) return false;
    if (held_bytes() + more > limits.soft) pay(hold, held_bytes() + more, more);
    if (held_bytes() + more > limits.hard || route(block).answer != Answer::kValid) return false;
    Huge& notes = notes_of(address(block));
    if (more > notes.room) return false;  // another thread was here meanwhile
    notes.room -= more;
    notes.usable += more;
    notes.bytes += more;
    huge_bytes += more;
    huge_live += more;
    return true;
  }
  // Moves a live huge block to a larger mapping, with `room` bytes behind it. Returns where it is then,
  // nullptr if it stays where and as it is.
  static void* move_huge(Hold& hold, const void* block, std::size_t size, std::size_t room) {
    if (size >> kAddressBits != 0) return nullptr;
    const std::size_t more = usable(size) - notes_of(address(block)).usable;
    const std::size_t bytes = notes_of(address(block)).bytes + more;
    if (!os::promises(bytes)) return nullptr;
    if (held_bytes() + more > limits.soft) pay(hold, held_bytes() + more, more);
    void* const to = hold.meanwhile([&] { return os::map(bytes + room, kRegion, os::Use::kBlocks); });
    if (to == nullptr) return room != 0 ? move_huge(hold, block, size, 0) : nullptr;
    if (held_bytes() + more > limits.hard || route(block).answer != Answer::kValid ||
        !mark_huge(to, bytes + room)) {
      mark(address(to), regions_in(bytes + room), Kind::kGone);
      return hold.meanwhile([&] { return os::unmap(to, bytes + room); }), nullptr;
    }
    Huge* const notes = &notes_of(address(block));
    const std::size_t offset = address(block) - address(notes), mapped = notes->bytes + notes->room;
    mark(address(notes), regions_in(mapped), Kind::kGone);
    huge_bytes += more;
    if (!hold.meanwhile([&] { return os::move_mapping(notes, mapped, to, bytes + room); })) {
      mark(address(to), regions_in(bytes + room), Kind::kGone);
      mark_huge(notes, mapped);
      huge_bytes -= more;
      return nullptr;
    }
    huge_live += more;
    return pointer((::new (to) Huge{address(to) + offset, usable(size), bytes, room})->block);
  }
  // A live huge block that was routed to goes back to the system.
  static void put_huge(Hold& hold, const void* block) {
    Huge* const notes = &notes_of(address(block));
    const std::size_t bytes = notes->bytes, mapped = bytes + notes->room;
    mark(address(notes), regions_in(mapped), Kind::kGone);
    huge_bytes -= bytes;
    huge_live -= notes->usable;
    --huge_blocks;
    ++ended;
    os::probe::span_retired(address(notes), bytes);
    // Where a mapping would have to be split and there are too many, at least the pages go.
    hold.meanwhile([&] { return os::unmap(notes, mapped) || os::purge(notes, mapped); });
  }

  // Free pages go back to the system until there are at most `keep` bytes of them, or some `most` have;
  // whether any did.
  static bool purge(Hold& hold, std::size_t keep, std::size_t most = SIZE_MAX) {
    const std::uint64_t before = purged_bytes;
    while (dirty_bytes > keep && purged_bytes - before < most) {
      Region& region = *static_cast<Region*>(with_dirty.previous);
      if (!(region.empty() ? unmap(hold, region) : purge_run(hold, region))) break;
    }
    if (purged_bytes != before) ++purges;
    return purged_bytes != before;
  }

  // Around a fork the lock is held, so that the child finds everything whole, and the system is at no work of
  // ours, or what it is at would be lost to the child. Not where a signal handler forks that interrupted this
  // very thread inside, or forking: no other thread could end that. There the child makes itself whole when
  // it needs the lock (make_whole).
  static void before_fork() {
    Thread& thread = mine();
    if (HZ_UNLIKELY(thread.inside || thread.fork == Fork::kUnderWay)) {
      if (os::lock_streams()) ++thread.unhooked_streams;
      ++thread.unhooked;
      return;
    }
    for (;;) {
      const bool streams = os::lock_streams();
      thread.fork = Fork::kUnderWay;
      if (lock.had_within(os::kStreamsPatience)) {
        if (at_work == 0) return void(has_streams = streams);
        lock.unlock();
      }
      thread.fork = Fork::kNone;
      if (streams) os::unlock_streams();
      os::let_others_wake();
    }
  }
  static void after_fork() {
    if (!was_unhooked()) return end_fork(&os::unlock_streams);
    if (mine().unhooked_streams == 0) return;
    --mine().unhooked_streams;
    os::unlock_streams();
  }
  static void in_child() {
    if (!was_unhooked()) return end_fork(&os::renew_streams);
    mine().unhooked_streams = 0;
    if (mine().fork == Fork::kNone) mine().fork = Fork::kUnhooked;
  }

  // What the notes cost.
  static std::size_t metadata_bytes() { return regions * kTouchedNotes + huge_blocks * kPage; }
  static std::size_t held_bytes() { return used_bytes + dirty_bytes + huge_bytes; }

  static inline constinit os::Lock lock;
  enum class Fork : std::uint8_t { kNone, kUnderWay, kUnhooked };  // the last: this is the child of one
  struct Thread {
    Fork fork = Fork::kNone;
    bool inside = false;                // has the lock, or the system works for it, or it is about to
    std::uint8_t unhooked = 0;          // forks that our hooks do nothing for, but lock the list of streams:
    std::uint8_t unhooked_streams = 0;  // how many of them did

    static constexpr Thread late() { return {}; }
    bool is_over() const { return true; }
  };
  static Thread& mine() { return os::PerThread<Thread>::mine(); }
  static inline constinit MemoryLimits limits;
  static inline constinit std::size_t used_bytes = 0;   // of granules in spans, and of those being purged
  static inline constinit std::size_t dirty_bytes = 0;  // of free granules that have pages
  static inline constinit std::size_t empty_spans = 0;  // of slots, in their class's list
  static inline constinit std::size_t huge_live = 0;    // usable bytes of huge blocks
  static inline constinit std::size_t huge_bytes = 0, huge_blocks = 0, regions = 0;
  static inline constinit std::uint64_t purges = 0, purged_bytes = 0, begun = 0, ended = 0;
  static inline constinit unsigned at_work = 0;  // threads for which the system works
  static inline constinit unsigned leaving = 0;  // purges under way: what they are at is in no list

 private:
  template <class Line>
  friend struct LayoutOf;

  // Such a fork ends before those around it.
  static bool was_unhooked() {
    Thread& thread = mine();
    if (HZ_LIKELY(thread.unhooked == 0)) return false;
    --thread.unhooked;
    return true;
  }
  static void end_fork(void (*end_of_streams)()) {
    const bool streams = has_streams;
    // Before the C library is called: a library that wraps its function may allocate, and that needs the
    // lock.
    mine().inside = true;
    mine().fork = Fork::kNone;
    lock.unlock();
    mine().inside = false;
    if (streams) end_of_streams();
  }
  static inline constinit bool has_streams = false;  // of who forks, who has the lock

  static constexpr std::size_t kTouchedNotes = 3 * kPage;  // of a region in common use

  // --- the table: two levels, of which a program touches a page or two

  enum class Kind : std::uint8_t { kNothing, kGone, kSpans, kHuge, kHugeRest };
  static constexpr unsigned kAddressBits = 48, kLeafBits = 13;
  static constexpr std::size_t kLeaf = std::size_t{1} << kLeafBits;  // bytes, each for 4 MiB
  static constexpr std::size_t kLeaves = std::size_t{1} << (kAddressBits - kRegionShift - kLeafBits);
  static inline constinit Kind* leaves[kLeaves] = {};

  static Kind kind(std::uintptr_t at) {
    if (at >> kAddressBits != 0) return Kind::kNothing;
    const Kind* leaf = leaves[at >> (kRegionShift + kLeafBits)];
    return leaf == nullptr ? Kind::kNothing : leaf[at >> kRegionShift & (kLeaf - 1)];
  }
  // False where there is no memory for a leaf; never for what was marked before.
  static bool mark(std::uintptr_t at, std::size_t count, Kind kind) {
    for (std::size_t i = at >> kRegionShift; i < (at >> kRegionShift) + count; ++i) {
      Kind*& leaf = leaves[i >> kLeafBits];
      const std::size_t page = os::page_bytes();
      if (leaf == nullptr) leaf = static_cast<Kind*>(os::map(align_up(kLeaf, page), page));
      if (leaf == nullptr) return false;
      leaf[i & (kLeaf - 1)] = kind;
    }
    return true;
  }
  static std::size_t regions_in(std::size_t bytes) { return (bytes + kRegion - 1) >> kRegionShift; }

  static Route in_region(std::uintptr_t at) {
    Region& region = Region::of(at);
    const Region::Found found = region.find(at);
    if (found.fault == Fault::kNotAllocated) {
      const bool ours = &region != in_part || Region::granule_of(at) < kFirstGranules;
      return {ours ? Answer::kInvalid : Answer::kMiss,
              ours ? found.fault : Fault::kForeign,
              0,
              found.span->slot_bytes,
              &region,
              found.span,
              found.slot};
    }
    const Answer answer = found.fault == Fault::kNone ? Answer::kValid : Answer::kInvalid;
    return {answer, found.fault, found.span->bin, found.span->slot_bytes, &region, found.span, found.slot};
  }

  // --- huge blocks

  struct Huge {
    std::uintptr_t block;
    std::size_t usable;
    std::size_t bytes;  // of the mapping, which begins here, but for its room
    std::size_t room;   // behind them
  };
  // A block that begins with a region has its notes in the one before.
  static Huge& notes_of(std::uintptr_t block) {
    return *static_cast<Huge*>(pointer((block - 1) & ~(kRegion - 1)));
  }
  static bool mark_huge(void* start, std::size_t bytes) {
    return mark(address(start), 1, Kind::kHuge) &&
           mark(address(start) + kRegion, regions_in(bytes) - 1, Kind::kHugeRest);
  }
  static Route in_huge(std::uintptr_t at) {
    if (kind(at - 1) == Kind::kHuge) {
      const Huge& notes = notes_of(at);
      if (at == notes.block)
        return {Answer::kValid, Fault::kNone, kHugeBin, notes.usable, nullptr, nullptr, 0};
    }
    const bool before =
        kind(at) == Kind::kHuge && at < static_cast<Huge*>(pointer(at & ~(kRegion - 1)))->block;
    const Fault fault = before ? Fault::kNotAllocated : Fault::kInterior;
    return {Answer::kInvalid, fault, kHugeBin, 0, nullptr, nullptr, 0};
  }
  static void* map_huge(std::size_t bytes, std::size_t offset, std::size_t alignment) {
    if (!os::promises(bytes)) return nullptr;
    if (alignment <= kRegion) return os::map(bytes, kRegion, os::Use::kBlocks);
    void* space = os::map(alignment + bytes - offset, alignment, os::Use::kBlocks);
    if (space == nullptr) return nullptr;
    void* start = pointer(address(space) + alignment - offset);
    os::unmap(space, alignment - offset);
    return start;
  }

  // --- granules

  static std::size_t bytes_of(std::uint64_t granules) {
    return static_cast<std::size_t>(__builtin_popcountll(granules)) << kGranuleShift;
  }

  static bool begin_span(Hold& hold, Bin bin, std::size_t multiple) {
    const unsigned count = static_cast<unsigned>((slot_size(bin) + kGranule - 1) >> kGranuleShift);
    const std::size_t bytes = std::size_t{count} << kGranuleShift;
    unsigned rounds = 0;
    for (bool paid = false; with_free_slots[bin].alone();) {  // else another thread freed one meanwhile
      Region* region = with_free(count, multiple);
      const unsigned first = region == nullptr ? 1 : region->find_free(count, multiple);
      const std::uint64_t run = Region::mask(first, count);
      const std::uint64_t clean = region == nullptr ? run : run & ~region->dirty;
      const std::size_t next = held_bytes() + bytes_of(clean);
      if (clean != 0 && next > limits.soft && !paid) {
        pay(hold, next, bytes);
        paid = true;
      } else if (clean != 0 && next > limits.hard) {
        os::probe::limit(os::probe::Limit::kHard, bytes);
        if (!gave_way(hold, rounds)) return false;
      } else if (region != nullptr) {
        use(*region, run);
        ++begun;
        os::probe::span_acquired(address(region->at(first, 0)), bytes);
        Span& span = region->begin(first, bin, clean == run);
        cut_tail(hold, *region, span);
        ++empty_spans;
        span.insert(with_free_slots[bin]);
      } else if (!map(hold) && !gave_way(hold, rounds)) {
        return false;
      }
    }
    return true;
  }
  static void end_span(Region& region, Span& span) {
    span.remove();
    --empty_spans;
    ++ended;
    const unsigned first = region.number_of(span), count = Region::granules_of(span);
    used_bytes += tail_of(span);
    os::probe::span_retired(address(region.at(first, 0)), std::size_t{count} << kGranuleShift);
    release(region, Region::mask(first, count), true);
  }
  // Behind its last slot a span has no memory, and counts for none. The lock is open while the system works:
  // the span is in use already, and in no list yet.
  static void cut_tail(Hold& hold, Region& region, const Span& span) {
    const std::size_t tail = tail_of(span), end = std::size_t{Region::granules_of(span)} << kGranuleShift;
    const unsigned first = region.number_of(span), last = first + Region::granules_of(span) - 1;
    used_bytes -= tail;
    const bool had = !span.zeroed && region.backed[last] > kPagesPerGranule - (tail >> kPageShift);
    for (unsigned i = first; i < last; ++i) region.backed[i] = kPagesPerGranule;
    region.backed[last] = static_cast<std::uint8_t>(kPagesPerGranule - (tail >> kPageShift));
    if (had && hold.meanwhile([&] { return os::purge(region.at(first, end - tail), tail); })) {
      purged_bytes += tail;
      ++purges;
    }
  }
  static std::size_t tail_of(const Span& span) {
    const std::size_t used = std::size_t{span.slot_bytes} * span.slots;
    return align_up(used, kGranule) - align_up(used, os::page_bytes());
  }
  // Of regions without pages, the newest alone where none had so many granules the last time: each region of
  // large blocks has some that are free, and too few.
  static Region* with_free(unsigned count, std::size_t multiple) {
    constexpr unsigned kNewest = 8;
    if (Region* const found = first_with(with_dirty, ~0U, count, multiple)) return found;
    if (count >= lacking) return first_with(with_clean, kNewest, count, multiple);
    Region* const found = first_with(with_clean, ~0U, count, multiple);
    if (found == nullptr && multiple == 1) lacking = count;
    return found;
  }
  static Region* first_with(Link& list, unsigned most, unsigned count, std::size_t multiple) {
    for (Link* at = list.next; at != &list && most != 0; at = at->next, --most) {
      auto* region = static_cast<Region*>(at);
      if (region->find_free(count, multiple) != 0) return region;
    }
    return nullptr;
  }

  static void use(Region& region, std::uint64_t run) {
    used_bytes += bytes_of(run);
    dirty_bytes -= bytes_of(run & region.dirty);
    region.used |= run;
    region.dirty &= ~run;
    enlist(region);
  }
  static void release(Region& region, std::uint64_t run, bool dirty) {
    used_bytes -= bytes_of(run);
    region.used &= ~run;
    if (dirty) {
      dirty_bytes += bytes_of(run);
      region.dirty |= run;
    }
    enlist(region);
  }
  static void enlist(Region& region) {
    region.remove();
    if (!region.full()) region.insert(region.dirty != 0 ? with_dirty : with_clean);
  }

  // --- from the system, and back

  // Growth to `next` bytes, by at most `more`, past the soft limit, is paid with free pages.
  static void pay(Hold& hold, std::size_t next, std::size_t more) {
    os::probe::limit(os::probe::Limit::kSoft, more);
    const std::size_t due = next - limits.soft;
    end_empty_spans();
    purge(hold, due < dirty_bytes ? dirty_bytes - due : 0);
  }
  // Free pages have gone back, or may be about to, by another thread.
  static bool gave_way(Hold& hold, unsigned& rounds) {
    end_empty_spans();
    if (purge(hold, 0)) return true;
    if (leaving == 0 || ++rounds > kPatience) return false;
    hold.give_way();
    return true;
  }
  static constexpr unsigned kPatience = 1000;  // the system may refuse what others try

  static bool map(Hold& hold) {
    if (in_part != nullptr && complete(hold)) return true;
    void* const next = pointer(below_last);
    void* at = hold.meanwhile([&] {
      const bool there = next != nullptr && os::extend(next, kRegion) == os::Placed::kHere;
      return there ? next : os::map(kRegion, kRegion, os::Use::kBlocks);
    });
    if (at == nullptr) return false;
    if (!mark(address(at), 1, Kind::kSpans))
      return hold.meanwhile([&] { return os::unmap(at, kRegion); }), false;
    const bool first = below_last == 0;
    ++regions;
    below_last = address(at) - kRegion;
    auto* const region = ::new (at) Region;
    if (first && os::unmap(region->at(kFirstGranules, 0), kRegion - kFirstGranules * kGranule)) {
      in_part = region;
      region->used |= kLaterGranules;
    }
    enlist(*region);
    return true;
  }
  // Maps the granules that the first region does not have. False where another mapping is in the way.
  static bool complete(Hold& hold) {
    Region& region = *in_part;
    in_part = nullptr;
    const bool there = hold.meanwhile([&] {
      return os::extend(region.at(kFirstGranules, 0), kRegion - kFirstGranules * kGranule) ==
             os::Placed::kHere;
    });
    if (!there) return in_part = &region, false;
    region.used &= ~kLaterGranules;
    return enlist(region), true;
  }
  static void has_left() {
    if (HZ_LIKELY(leaving != 0)) --leaving;  // as at_work
  }
  static bool unmap(Hold& hold, Region& region) {
    const std::size_t dirty = bytes_of(region.dirty);
    region.remove();
    dirty_bytes -= dirty;
    mark(address(&region), 1, Kind::kGone);
    ++leaving;
    const bool gone = hold.meanwhile([&] { return os::unmap(&region, kRegion); });
    has_left();
    if (gone) {
      purged_bytes += dirty;
      --regions;
      return true;
    }
    mark(address(&region), 1, Kind::kSpans);
    dirty_bytes += dirty;
    enlist(region);
    return false;
  }
  // The pages of the first free granules that have some. They are in use meanwhile.
  static bool purge_run(Hold& hold, Region& region) {
    const auto first = static_cast<unsigned>(__builtin_ctzll(region.dirty));
    const auto count = static_cast<unsigned>(__builtin_ctzll(~(region.dirty >> first)));
    const std::uint64_t run = Region::mask(first, count);
    use(region, run);
    ++leaving;
    const bool gone = hold.meanwhile([&] { return os::purge(region.at(first, 0), bytes_of(run)); });
    has_left();
    if (gone) purged_bytes += bytes_of(run), lacking = kGranules;
    release(region, run, !gone);
    // Meanwhile the last of its spans may have ended.
    return gone && region.empty() && region.dirty == 0 ? unmap(hold, region) : gone;
  }

  // --- after a fork that was not hooked

  // In the child of a fork that before_fork() did nothing for. It has one thread, which may have been about
  // to wait for the lock, or have interrupted itself with it; another thread may have had it, and have been
  // anywhere. What is free and where is counted again, by the bits of live slots and the notes of huge
  // blocks.
  HZ_COLD static void make_whole() {
    mine().fork = Fork::kNone;
    lock.reset();
    at_work = leaving = 0;
    used_bytes = dirty_bytes = empty_spans = huge_live = huge_bytes = huge_blocks = regions = 0;
    lacking = kGranules;
    for (Link* list : {&with_dirty, &with_clean}) ::new (list) Link;
    for (Link& list : with_free_slots) ::new (&list) Link;
    for (std::size_t i = 0; i < kLeaves * kLeaf; ++i) {
      const Kind* const leaf = leaves[i >> kLeafBits];
      if (leaf == nullptr) {
        i |= kLeaf - 1;
      } else if (const Kind kind = leaf[i & (kLeaf - 1)]; kind == Kind::kSpans || kind == Kind::kHuge) {
        void* const at = pointer(i << kRegionShift);
        kind == Kind::kSpans ? count_again(*static_cast<Region*>(at)) : count_again(*static_cast<Huge*>(at));
      }
    }
  }
  static void count_again(Region& region) {
    std::uint64_t used = 1;  // the notes
    ::new (static_cast<Link*>(&region)) Link;
    for (unsigned granule = 1; granule < kGranules;) {
      Span& span = region.spans[granule];
      ::new (static_cast<Link*>(&span)) Link;
      const unsigned live = (region.used >> granule & 1) != 0 ? region.count(span) : 0;
      const unsigned count = live == 0 ? 1 : Region::granules_of(span);
      if (live != 0) {
        used |= Region::mask(granule, count);
        span.used = static_cast<std::uint16_t>(live);
        span.first_word = 0;
        if (live < span.slots) span.insert(with_free_slots[span.bin]);
      }
      granule += count;
    }
    const std::size_t later = kRegion - kFirstGranules * kGranule;
    const bool whole = (region.used & kLaterGranules) != kLaterGranules ||
                       os::is_mapped(region.at(kFirstGranules, 0), later);
    if (!whole) in_part = &region;
    const std::uint64_t missing = whole ? 0 : kLaterGranules;
    region.dirty = (region.dirty | region.used) & ~(used | missing);
    region.used = used | missing;
    ++regions;
    used_bytes += bytes_of(used & ~std::uint64_t{1});
    dirty_bytes += bytes_of(region.dirty);
    enlist(region);
  }
  static void count_again(const Huge& notes) {
    if (notes.bytes == 0) return;  // it was about to be made
    ++huge_blocks;
    huge_bytes += notes.bytes;
    huge_live += notes.usable;
  }

  // Regions with free granules, by whether any of these has pages; spans with free slots, by class.
  static inline constinit Link with_dirty, with_clean;
  // So many granules no region without pages had when all were looked at; such a region has more only when
  // its pages went.
  static inline constinit unsigned lacking = kGranules;
  static inline constinit Link with_free_slots[kBins];
  // The first region, while only its first granules are mapped: a small process that locks its memory locks
  // all that is mapped. The others count as used, so it is never unmapped.
  static inline constinit Region* in_part = nullptr;
  static constexpr unsigned kFirstGranules = 16;
  static constexpr std::uint64_t kLaterGranules = ~std::uint64_t{0} << kFirstGranules;
  // Where the next region would make one mapping with the last: a process may have some 65,000.
  static inline constinit std::uintptr_t below_last = 0;
};

}  // namespace hz::one_lock
