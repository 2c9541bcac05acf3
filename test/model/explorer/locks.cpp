// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: what everything else stands on: the lock, the turn, the table that grows while others read it,
// and the stores of magazines.
#include "explorer.hpp"
#include "os/growing_table.hpp"
#include "os/lock.hpp"
#include "os/magazines.hpp"

namespace hz_test::explorer {
namespace {

struct Guarded {
  hz::os::LockOf<hz::os::Rank::kSource> lock;
  unsigned data = 0;
};

void spins(int n) { hz::os::Lock::spins_.store(n, std::memory_order_relaxed); }

// Data are one thread's at a time, and whoever sleeps is woken.
void excludes(Execution& e, int spinning) {
  auto& it = e.make<Guarded>();
  for (unsigned i = 0; i < 3; ++i) {
    e.thread([&it, i, spinning] {
      spins(spinning);
      const hz::os::Guarded hold(it.lock);
      others_may_run();
      it.data = it.data * 4 + i + 1;
      others_may_run();
    });
  }
  e.finally([&it] {
    unsigned seen = 0;
    for (unsigned rest = it.data; rest != 0; rest /= 4) seen |= 1U << (rest % 4);
    expect(seen == 14, "what one holder wrote was lost");
  });
}
const Scenario sleeping("lock.sleeps", [](Execution& e) { excludes(e, 0); });
const Scenario spinning("lock.spins", [](Execution& e) { excludes(e, 1); });

const Scenario tried("lock.tries", [](Execution& e) {
  auto& it = e.make<Guarded>();
  auto& got = e.make<unsigned>();
  for (unsigned i = 0; i < 2; ++i) {
    e.thread([&it] {
      spins(0);
      if (!it.lock.try_lock()) return;
      ++it.data;
      it.lock.unlock();
    });
  }
  e.thread([&it, &got] {
    spins(0);
    if (!it.lock.lock_within(100)) return;
    got = 1;
    ++it.data;
    it.lock.unlock();
  });
  e.finally([&] { expect(it.data > 0 && it.lock.try_lock(), "nobody got it, or it was not released"); });
});

const Scenario turn("turn", [](Execution& e) {
  struct It {
    hz::os::Turn turn;
    unsigned data = 0;
  };
  auto& it = e.make<It>();
  for (unsigned i = 0; i < 3; ++i) {
    e.thread([&it] {
      const hz::os::Turn::Mine mine(it.turn);
      if (mine.is()) ++it.data;
    });
  }
  e.finally([&it] { expect(it.data > 0, "nobody had a turn"); });
});

// Rows that nobody may lose: of a chunk, each thread writes one, and all are there.
const Scenario grows("table.grows", [](Execution& e) {
  struct Row {
    std::atomic<unsigned> number;
    unsigned data;
  };
  using Table = hz::os::GrowingTable<Row, 256>;
  auto& table = e.make<Table>();
  for (unsigned i = 0; i < 2; ++i) {
    e.thread([&table, i] {
      Row* const row = table.reach(64 + i);
      expect(row != nullptr && row->data == 0, "a row that is not zero");
      row->data = i + 1;
      row->number.store(i + 1, std::memory_order_release);
    });
  }
  e.thread([&table] {
    if (Row* const row = table.find(64))
      expect(row->number.load(std::memory_order_acquire) != 1 || row->data == 1, "half a row");
  });
  e.finally([&table] {
    for (unsigned i = 0; i < 2; ++i) expect(table.find(64 + i)->data == i + 1, "a row was lost");
  });
});

// Magazines are one thread's each, whichever store they go back to, and none is lost with a granule that
// goes.
const Scenario magazines("magazines", [](Execution& e) {
  using Store = hz::os::MagazineStore<254>;
  struct Stores {
    Store here, there;
  };
  auto& stores = e.make<Stores>();
  const auto use = [](Store::Magazine* magazine, unsigned by) {
    magazine->count = by;
    return magazine;
  };
  e.thread([=, &stores] {
    auto* const one = use(stores.here.take(), 1);
    one->follow_with(nullptr);
    Store::give(stores.there.keep(one));
    stores.there.shrink();
  });
  e.thread([=, &stores] {
    auto* const one = use(stores.there.take(), 2);
    expect(one->count == 2, "a magazine is given to two");
    one->follow_with(nullptr);
    Store::give(one);
    stores.here.shrink();
  });
  e.thread([=, &stores] {
    Store::give(stores.there.take_kept());
    auto* const one = use(stores.here.take(), 3);
    expect(one->count == 3, "a magazine is given to two");
    one->follow_with(nullptr);
    Store::give(one);
    stores.there.shrink();
  });
  e.finally([&stores] {
    Store::give(stores.there.take_kept());
    stores.here.shrink();
    stores.there.shrink();
    expect(stores.here.bytes() + stores.there.bytes() == 0,
           "memory of magazines that are all given back stays");
  });
});

}  // namespace
}  // namespace hz_test::explorer
