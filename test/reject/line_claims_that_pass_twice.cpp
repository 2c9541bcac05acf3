// SPDX-License-Identifier: Apache-2.0
//
// Two frees of one slot that become one bit.
// says: needs a guard of which one of two claims fails
#include "box/guard/outside.hpp"
#include "line/hz8.hpp"

struct Line : hz::Hz8 {
#ifndef HZ_COMPLETE
  using Guard = hz::Outside;
#endif
};

template struct hz::Composition<Line>;
