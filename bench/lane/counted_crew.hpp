// SPDX-License-Identifier: Apache-2.0
//
// A crew whose workers leave a `tally` of their calls, of which each is an op. Used by families that have no
// more to count than that.
#pragma once

#include "lane/caller.hpp"
#include "lane/crew.hpp"
#include "lane/lane.hpp"
#include "lane/record.hpp"
#include "support/harness_memory.hpp"

namespace hz::bench {

inline void count(const Tally& tally, Record& record) {
  record.ops += tally.calls();
  record.sends += tally.sent;
}

template <class Worker>
void run_counted_crew(const Run& run, HarnessMemory& memory, Worker* workers, Record& record) {
  run_crew(run, memory, workers, record);
  for (unsigned i = 0; i < run.threads; ++i) count(workers[i].tally, record);
}

}  // namespace hz::bench
