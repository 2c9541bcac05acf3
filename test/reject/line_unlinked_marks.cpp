// SPDX-License-Identifier: Apache-2.0
//
// Marks in free slots that no link leads to.
// says: a guard with marks needs links in free slots
#include "line/hakozuna.hpp"

struct Line : hz::Hakozuna {
#ifndef HZ_COMPLETE
  struct Guard : hz::Outside {
    static constexpr bool kMarks = true;
  };
#endif
};

template struct hz::Composition<Line>;
