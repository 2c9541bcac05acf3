// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: first-class heaps, the biased lock of a row, and the table of rows.
#include "explorer.hpp"
#include "heap/state/heap_table.hpp"

namespace hz_test::explorer {
namespace {

struct Heap {
  hz::HeapRow row;
  unsigned data;  // the heap's, of whoever is in
};

void use(unsigned& data) {
  ++data;
  others_may_run();
  ++data;
}

void by_bias(Heap& heap, const void* thread) {
  if (heap.row.enter_biased(thread)) {
    use(heap.data);
    heap.row.leave_biased();
  } else {
    heap.row.enter();
    use(heap.data);
    heap.row.lock.unlock();
  }
}
void by_lock(Heap& heap) {
  heap.row.enter();
  use(heap.data);
  heap.row.lock.unlock();
}

const Scenario one("bias.one", [](Execution& e) {
  auto& heap = e.make<Heap>();
  heap.row.biased.store(&heap, std::memory_order_relaxed);
  e.thread([&] {
    by_bias(heap, &heap);
    by_bias(heap, &heap);
  });
  e.thread([&] { by_lock(heap); });
  e.finally([&] { expect(heap.data == 6, "two were in at once"); });
});
const Scenario two("bias.two", [](Execution& e) {
  auto& heap = e.make<Heap>();
  heap.row.biased.store(&heap, std::memory_order_relaxed);
  e.thread([&] { by_bias(heap, &heap); });
  for (unsigned i = 0; i < 2; ++i) e.thread([&] { by_lock(heap); });
  e.finally([&] { expect(heap.data == 6, "two were in at once"); });
});

// A row that is used again: the thread of the first heap is late, and another one has begun the next.
const Scenario again("bias.again", [](Execution& e) {
  auto& heap = e.make<Heap>();
  heap.row.bias(&heap);
  e.thread([&] { by_bias(heap, &heap); });
  e.thread([&] {
    heap.row.enter();  // the first heap ends, and the next one begins
    heap.row.bias(&heap.data);
    heap.row.lock.unlock();
    by_bias(heap, &heap.data);
  });
  e.finally([&] { expect(heap.data == 4, "two were in at once"); });
});

// A fork holds every row; nobody is in, and the thread that forks keeps its own bias.
const Scenario forks("bias.fork", [](Execution& e) {
  auto& table = e.make<hz::HeapTable>();
  auto& data = e.make<unsigned>();
  const std::uint32_t number = hz::HeapTable::number(table.begin(nullptr));
  hz::HeapRow& row = *table.find(number);
  row.bias(&row);
  e.thread([&] {
    if (row.enter_biased(&row)) {
      use(data);
      row.leave_biased();
    } else {
      row.enter();
      use(data);
      row.lock.unlock();
    }
  });
  e.thread([&] {
    while (!table.lock_all(&data, 1)) hz::os::give_way();
    use(data);
    table.unlock_all();
  });
  e.finally([&] {
    expect(data == 4, "somebody was in while all was locked");
    expect(table.lock_all(nullptr, 1), "a lock stays held");
  });
});

// Two that begin a heap have two rows; a number that is known has its row, also in the first chunk of the
// table that grows.
const Scenario begin("heaps.begin", [](Execution& e) {
  auto& table = e.make<hz::HeapTable>();
  auto& handles = e.make<std::array<hz::HeapHandle, 2>>();
  table.last_.store(63, std::memory_order_relaxed);
  for (unsigned i = 0; i < 2; ++i) {
    e.thread([&, i] {
      const hz::os::Guarded hold(table.lock);
      handles[i] = table.begin(nullptr);
    });
  }
  e.thread([&] {
    const bool known = table.last_.load(std::memory_order_relaxed) >= 64;
    hz::HeapRow* const row = table.find(64);
    expect(row != nullptr || !known, "a number without its row");
    if (row != nullptr) expect(row->open == nullptr, "a row that is not zero");
  });
  e.finally([&] {
    expect(handles[0] != 0 && handles[1] != 0 && handles[0] != handles[1], "two heaps have a handle");
  });
});

}  // namespace
}  // namespace hz_test::explorer
