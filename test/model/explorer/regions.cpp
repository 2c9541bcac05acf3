// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: the heap of one lock (hz7), whose lock is open while the system works for it:
// the files of heap/one_lock themselves. What may go wrong there is that somebody has, finds or forks away
// from what the system is at. A free and an allocation are the calls that heap.hpp makes.
#include <cstdint>

#include "explorer.hpp"
#include "os/per_thread.hpp"
#include "streams.hpp"

namespace hz_test::explorer {
constexpr unsigned kThreads = 3;
}

namespace hz::os {

// Threads are coroutines here: each has its own by its number.
template <class T>
requires requires(T& thread) { thread.unhooked; }
class PerThread<T> {
 public:
  static T& mine() { return of[hz_test::explorer::self()]; }
  static inline T of[hz_test::explorer::kThreads] = {};
};

}  // namespace hz::os

#include "heap/one_lock/recovery.hpp"

namespace hz_test::explorer {
namespace {

using hz::one_lock::Account;
using hz::one_lock::Found;
using hz::one_lock::HeapLock;
using hz::one_lock::Regions;
using hz::one_lock::Spans;
using hz::one_lock::Table;
// All of its span, so that its granules are free at once when it is.
constexpr hz::Bin kBin = hz::scan_bin(1 << 20);
const std::size_t kBytes = hz::size_of_bin(kBin);

// What threads have, to be asked when pages go. The scenario's own: nothing orders who writes and who reads.
std::uintptr_t had[kThreads];
__attribute__((no_sanitize("thread"))) void has(unsigned thread, const void* block) {
  had[thread] = hz::address(block);
}
__attribute__((no_sanitize("thread"))) void expect_apart(std::uintptr_t at, std::size_t bytes) {
  for (const std::uintptr_t one : had)
    expect(one == 0 || one + kBytes <= at || at + bytes <= one, "the pages of a block went");
}

}  // namespace
}  // namespace hz_test::explorer

namespace hz::os {

bool Report::is_in_copy() { return false; }
Placed extend(void*, std::size_t, Use) { return Placed::kRefused; }
bool purge(void* at, std::size_t bytes, Use) {
  hz_test::explorer::others_may_run();
  hz_test::explorer::expect_apart(address(at), bytes);
  return true;
}

}  // namespace hz::os

namespace hz_test::explorer {
namespace {

// What is static begins anew.
void begin(std::size_t hard) {
  ::new (&HeapLock::lock) hz::os::Lock;
  hz::os::Lock::spins_.store(0, std::memory_order_relaxed);
  ::new (&Account::limits) hz::MemoryLimits;
  Account::limits.hard = hard;
  Account::used_bytes = Account::dirty_bytes = Spans::empty = 0;
  Account::huge_bytes = Account::huge_blocks = Account::regions = 0;
  Account::purges = Account::purged_bytes = Account::begun = Account::ended = 0;
  HeapLock::at_work = Regions::leaving = 0;
  // None is the process's first region, which is mapped in part and stays.
  Regions::in_part = nullptr;
  Regions::below_last = hz::one_lock::kRegion;
  for (auto*& leaf : Table::leaves) leaf = nullptr;
  Regions::lacking = hz::one_lock::kGranules;
  ::new (&Regions::with_dirty) hz::one_lock::Link;
  ::new (&Regions::with_clean) hz::one_lock::Link;
  Spans::open();
  for (unsigned i = 0; i < kThreads; ++i) {
    hz::os::PerThread<HeapLock::Thread>::of[i] = {};
    has(i, nullptr);
  }
}

bool is_valid(const void* block) {
  const HeapLock::Hold hold;
  const std::uintptr_t at = hz::address(block);
  return Table::kind(at) == Table::Kind::kSpans && Regions::find(at).why == hz::Fault::kNone;
}
void* take() {
  void* block = nullptr;
  {
    const HeapLock::Hold hold;
    bool zeroed = false;
    block = Spans::take(kBin, 1, zeroed);
    has(self(), block);
  }
  if (block != nullptr) expect(is_valid(block), "a block that somebody has is not known");
  return block;
}
void purge() {
  const HeapLock::Hold hold;
  Spans::end_empty();
  Regions::purge(0);
}
void give(const void* block) {
  {
    const HeapLock::Hold hold;
    const Found found = Regions::find(hz::address(block));
    expect(found.why == hz::Fault::kNone, "a block that somebody has is not known");
    has(self(), nullptr);
    Spans::put(found);
  }
  purge();
}
void nothing_is_left() {
  expect(Account::used_bytes == 0 && Account::dirty_bytes == 0, "the books do not balance");
  expect(HeapLock::at_work == 0 && Regions::leaving == 0, "the system works for nobody");
}

// One gives its block and all pages back while another one takes a block, and asks about what is gone.
const Scenario purged("regions.purge", [](Execution& e) {
  begin(SIZE_MAX);
  void* const block = take();
  e.thread([block] { give(block); });
  e.thread([block] {
    void* const mine = take();
    is_valid(block);
    give(mine);
  });
  e.finally([] {
    nothing_is_left();
    expect(Account::regions == 0, "a region without spans stays");
  });
});

// Where memory is full, what is about to go back is waited for. One block stays, so that its region does.
const Scenario full("regions.full", [](Execution& e) {
  begin(2 * kBytes);
  void* const stays = take();
  {
    const void* const block = take();
    const HeapLock::Hold hold;
    Spans::put(Regions::find(hz::address(block)));
    has(0, stays);
  }
  e.thread([] { purge(); });
  e.thread([] {
    void* const mine = take();
    expect(mine != nullptr, "memory is refused that another thread is about to give back");
    give(mine);
  });
  e.finally([stays] {
    give(stays);
    nothing_is_left();
  });
});

// A child finds nothing that the system was at for a thread that is not there any more.
const Scenario forked("regions.fork", [](Execution& e) {
  begin(SIZE_MAX);
  void* const block = take();
  e.thread([block] { give(block); });
  e.thread([block] {
    HeapLock::before_fork();
    go_on_in_a_child();
    HeapLock::in_child();
    has(0, nullptr);
    if (is_valid(block)) give(block);
    void* const mine = take();
    expect(mine != nullptr, "a child can have memory");
    give(mine);
    nothing_is_left();
  });
});

// Nobody waits in a circle: who forks, who flushes all streams, and who reads one and needs a block for that.
const Scenario streams("regions.streams", [](Execution& e) {
  begin(SIZE_MAX);
  Streams::begin();
  e.thread([] { Streams::read([] { give(take()); }); });
  e.thread([] { Streams::flush_all(); });
  e.thread([] {
    HeapLock::before_fork();
    Streams::fork();
    others_may_run();
    Streams::unlock();
    HeapLock::after_fork();
  });
  e.finally([] { Streams::end(); });
});

}  // namespace
}  // namespace hz_test::explorer
