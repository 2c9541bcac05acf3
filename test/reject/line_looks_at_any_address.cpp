// SPDX-License-Identifier: Apache-2.0
//
// A guard that reads what lies at an address of which nobody knows anything.
// says: a guard that looks at slots needs a route with owners
#include "box/guard/slot_state.hpp"
#include "line/hakozuna.hpp"

struct Line : hz::Hakozuna {
#ifndef HZ_COMPLETE
  using Guard = hz::SlotState<Line>;
#endif
};

template struct hz::Composition<Line>;
