// SPDX-License-Identifier: Apache-2.0
//
// A central with a place for each owner and none for those who have none.
// says: one for the orphans
#include "line/hz8.hpp"

struct Line : hz::Hz8 {
#ifndef HZ_COMPLETE
  struct Central : hz::Hz8::Central {
    static constexpr unsigned kMostOwners = Line::kOwners;
  };
#endif
};

template struct hz::Composition<Line>;
