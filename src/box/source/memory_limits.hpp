// SPDX-License-Identifier: Apache-2.0
//
// How much the heap may have from the system: the limits in bytes, and when caches have to be returned first.
// Plain data under the source's lock; knows nothing of runs. Costs one comparison as long as there is room.
//
//   hard     the heap never has more
//   soft     before the heap grows past it, what the thread and all of them together cache comes back: once,
//            and then again whenever it has grown by soft / kStepShare over the least that it had since
//            (`lowest`), so that a heap that must live beyond its soft limit does not empty its caches for
//            every span. What other threads cache, and free pages in spans, come back with it when the heap
//            has grown by a kStepShare-th over what it had then (`took_back`), or had shrunk to half of that
//
// The container (control groups) and the memory of the machine are asked for once, when the heap opens: later
// a program may have forbidden itself to open files.
#pragma once

#include <atomic>

#include "base/layout.hpp"
#include "base/units.hpp"
#include "box/source/contract.hpp"
#include "os/os.hpp"
#include "os/probe.hpp"

namespace hz {

struct MemoryLimits {
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr std::size_t kStepShare = 16;
  static constexpr unsigned kDefaultSoftPercent =
      90;  // of the container's memory, where there is such a limit
  // Of the container's memory, for the caches of as many threads as it has CPUs.
  static constexpr std::size_t kThreadShare = 64;
  static constexpr std::size_t kLeastThreadShare = 256 * kKiB;

  // What stands between a request and its memory.
  enum class Room : std::uint8_t { kEnough, kAfterPurge, kWhenOthersPurged, kNone };

  std::size_t soft = kNone, hard = kNone;
  std::size_t lowest = 0, took_back = 0;
  MemoryLimit asked_soft, asked_hard;
  bool known = false;  // what follows
  std::size_t memory = 0, usual_soft = kNone;
  // What a thread may cache at most so that the container is not filled with caches. Read without the lock.
  std::atomic<std::size_t> thread_share{kNone};
  std::atomic<bool> owes_recall{false};  // of what other threads cache, and of free pages in spans

  static constexpr auto words() {
    return layout::Words<2>{layout::Word("limit.soft", offsetof(MemoryLimits, soft), sizeof(std::size_t)),
                            {"limit.hard", offsetof(MemoryLimits, hard), sizeof(std::size_t)}};
  }

  // When the heap opens, and whenever one is set later; what is not given stays as it was.
  void set(MemoryLimit soft_limit, MemoryLimit hard_limit);
  Limits now() const { return {told(soft), told(hard)}; }

  // Limits in bytes, from what was asked for and what there is.
  void compute(const os::Container& container, std::size_t physical);

  // Whether caches have to be returned before the heap has `next` bytes.
  bool recall_due(std::size_t next) const {
    return next > soft && next > lowest && next - lowest > soft / kStepShare;
  }
  // Bytes that the heap holds, and of these the dirty free ones and those on their way to the system.
  struct Held {
    std::size_t all, dirty, leaving;
  };
  static constexpr std::size_t kUnpayable = SIZE_MAX;  // as Demand::paid: the system takes nothing back

  // Returns whether the heap may hold `more` bytes. What is free goes back to the system first. Requires:
  // that is more than the soft limit.
  Room room_for(const Held& now, std::size_t more, const Demand& demand) {
    const std::size_t next = now.all + more;
    const std::size_t credit = demand.instead_of << kGranuleShift;
    const std::size_t most = hard > kNone - credit ? kNone : hard + credit;
    if (next - now.dirty - now.leaving > most) return refused(os::probe::Limit::kHard, more);
    // Past the soft limit growth is paid with free pages, byte for byte; past the hard one with all that it
    // takes.
    const bool unpaid = next > most ? demand.paid != kUnpayable : demand.paid < more;
    if (unpaid && now.dirty != 0) return Room::kAfterPurge;
    if (next > most)
      return now.leaving != 0 ? Room::kWhenOthersPurged : refused(os::probe::Limit::kHard, more);
    if (demand.force || !recall_due(next)) return Room::kEnough;
    recalled(now.all);
    return refused(os::probe::Limit::kSoft, more);
  }
  // They will be; this is what the heap has now.
  void recalled(std::size_t held) {
    lowest = held;
    if (held - took_back / kStepShare <= took_back) return;
    took_back = held;
    owes_recall.store(true, std::memory_order_relaxed);
  }
  // Returns true to one caller after each time: it takes back the rest, with no lock.
  bool took_recall() {
    return owes_recall.load(std::memory_order_relaxed) &&
           owes_recall.exchange(false, std::memory_order_relaxed);
  }
  void fell(std::size_t held) {
    if (held < lowest) lowest = held;
    if (held < took_back / 2) took_back = 0;
  }

 private:
  static Room refused(os::probe::Limit limit, std::size_t more) {
    os::probe::limit(limit, more);
    return Room::kNone;
  }
  void apply();
  static MemoryLimit told(std::size_t bytes) {
    return {.bytes = bytes == kNone ? 0 : bytes, .percent = 0, .given = true};
  }
};

}  // namespace hz
