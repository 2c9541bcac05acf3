// SPDX-License-Identifier: Apache-2.0
//
// Links in free slots that nothing proves.
// says: a front in band needs a guard with marks
#include "box/guard/outside.hpp"
#include "line/hz3.hpp"

struct Line : hz::Hz3 {
#ifndef HZ_COMPLETE
  using Guard = hz::Outside;
#endif
};

template struct hz::Composition<Line>;
