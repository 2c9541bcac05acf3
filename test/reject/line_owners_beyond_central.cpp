// SPDX-License-Identifier: Apache-2.0
//
// A central with fewer places than there are owners.
// says: the central needs a place for every owner
#include "line/hz3.hpp"

struct Line : hz::Hz3 {
#ifndef HZ_COMPLETE
  struct Few {
    static constexpr unsigned kOwners = Line::kOwners - 1;
  };
  using Central = hz::LockFreeList<Few>;
#endif
};

template struct hz::Composition<Line>;
