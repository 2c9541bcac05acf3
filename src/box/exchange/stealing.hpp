// SPDX-License-Identifier: Apache-2.0
//
// Whom a thread asks for slots that wait for others, before it maps memory: owners without a thread, whose
// slots nobody would come for, and, where the box lends, any owner, whose threads may be waiting for a
// processor. Part of the exchange boxes that keep owners' lists apart. A walk along at most kLooks owners,
// from where the last one ended.
#pragma once

#include <atomic>

#include "box/exchange/contract.hpp"

namespace hz {

class Stealing {
 public:
  static constexpr unsigned kLooks = 64;

  // How many threads an owner has is a hint: any list may be taken from by anybody.
  template <class Exchange>
  unsigned steal(typename Exchange::Global& g, auto& owners, Bin bin, unsigned want, bool anybodys,
                 typename Exchange::Bundle& out) {
    const unsigned end = owners.end();
    const unsigned looks = end < kLooks ? end : kLooks;
    const unsigned from = end == looks ? 0 : next_.fetch_add(looks, std::memory_order_relaxed);
    for (unsigned i = 0; i < looks; ++i) {
      const unsigned owner = (from + i) % end;
      if (!anybodys && owners.threads(owner) != 0) continue;
      Exchange::collect(g, owner, bin, want, out);
      if (out.count != 0) return out.count;
      Exchange::take(g, owner, bin, want, out);
      if (out.count != 0) return 0;
    }
    return 0;
  }

 private:
  std::atomic<unsigned> next_{0};
};

}  // namespace hz
