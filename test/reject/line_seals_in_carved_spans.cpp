// SPDX-License-Identifier: Apache-2.0
//
// Seals in spans whose slots are carved one after the other: those behind have none yet.
// says: a guard with seals needs a pool that carves whole spans
#include "line/secure.hpp"

struct Line : hz::Secure {
#ifndef HZ_COMPLETE
  using Pool = hz::BasicSpanPool<false>;
#endif
};

template struct hz::Composition<Line>;
