// SPDX-License-Identifier: Apache-2.0
//
// Tags of pages, and a pool that hands out a part of one.
// says: page tags need a pool that carves whole pages
#include "line/hz3.hpp"

struct Line : hz::Hz3 {
#ifndef HZ_COMPLETE
  using Pool = hz::BasicSpanPool<false>;
#endif
};

template struct hz::Composition<Line>;
