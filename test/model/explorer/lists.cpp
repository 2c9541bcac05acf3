// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: the shared lists of slots, of all sizes.
#include "base/free_list.hpp"
#include "explorer.hpp"

namespace hz_test::explorer {
namespace {

struct Slot {
  hz::Batch words;
};

// Threads push chains and take what they find; at the end everything is in the list, once.
void push_and_take(Execution& e, std::size_t slot_bytes) {
  auto& list = e.make<hz::SharedList>();
  Slot* const slots = static_cast<Slot*>(e.room(4 * sizeof(Slot), 64));
  for (unsigned i = 0; i < 4; ++i) starts_outside(slots + i);
  const auto push = [&list, slot_bytes](Slot* first, unsigned n) {
    hz::Chain chain = {};
    for (unsigned i = 0; i < n; ++i) {
      chain.push(first + i);
      given(first + i);
    }
    list.push(chain, slot_bytes);
  };
  const auto take = [&list, slot_bytes](unsigned want) {
    hz::Chain chain = list.take(want, slot_bytes);
    for (hz::FreeSlot* at = chain.first; chain.count != 0; --chain.count) {
      taken(at);
      at = at->next;
    }
  };
  e.thread([=] {
    push(slots, 2);
    push(slots + 2, 1);
  });
  e.thread([=] { take(1); });
  e.thread([=] {
    push(slots + 3, 1);
    take(1);
  });
  e.finally([=, &list] {
    while (!list.empty()) take(8);
    expect(outside() == 4, "a slot was lost in a shared list");
  });
}
const Scenario small("list.small", [](Execution& e) { push_and_take(e, sizeof(hz::FreeSlot)); });
const Scenario batches("list.batches", [](Execution& e) { push_and_take(e, hz::kBatchBytes); });

}  // namespace
}  // namespace hz_test::explorer
