// SPDX-License-Identifier: Apache-2.0
//
// Taking from a pool and giving back as the boundary does: carved slots are named, emptied spans listed.
// Called by the tests of pools.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "box/pool/contract.hpp"

namespace hz_test {

// In the order in which slots are handed out; `out` has room for `want`, and for a page.
template <class P>
hz::Taken TakeListed(typename P::Global& pool, hz::Bin bin, unsigned owner, void** out, unsigned want) {
  const hz::Taken taken = P::take(pool, bin, owner, out, want, true);
  if (taken.fresh) {
    void** at = out;
    for (hz::Carved carved = P::carved(taken, bin); carved.left() != 0;) *at++ = carved.next();
  }
  std::reverse(out, out + taken.slots);
  return taken;
}

template <class P>
hz::Given GiveListed(typename P::Global& pool, hz::Bin bin, void** slots, unsigned count,
                     std::vector<std::uintptr_t>& emptied) {
  const hz::Given given = P::give(pool, bin, slots, count);
  emptied.clear();
  for (std::uintptr_t span = given.emptied; span != 0; span = P::next_emptied(pool, span))
    emptied.push_back(span);
  return given;
}

}  // namespace hz_test
