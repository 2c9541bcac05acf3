// SPDX-License-Identifier: Apache-2.0
//
// A guard that is told where slots go, and does not look at them when they are freed.
// says: a guard that is told of moves needs
#include "line/hz6.hpp"

struct Line : hz::Hz6 {
#ifndef HZ_COMPLETE
  struct Guard : hz::Hz6::Guard {
    static constexpr bool kProves = false;
  };
#endif
};

template struct hz::Composition<Line>;
