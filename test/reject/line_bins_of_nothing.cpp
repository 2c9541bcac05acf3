// SPDX-License-Identifier: Apache-2.0
//
// A front without rows for the bins that a route without owners may name.
// says: needs a front that may be asked for any bin
#include "line/hakozuna.hpp"

struct Line : hz::Hakozuna {
#ifndef HZ_COMPLETE
  struct Front : hz::Hakozuna::Front {
    static constexpr bool kAnyBin = false;
  };
#endif
};

template struct hz::Composition<Line>;
