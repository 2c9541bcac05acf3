// SPDX-License-Identifier: Apache-2.0
//
// More owners than a span can tell apart.
// says: spans need room for every owner
#include "line/hz4.hpp"

struct Line : hz::Hz4 {
#ifndef HZ_COMPLETE
  static constexpr unsigned kOwners = hz::Hz4::kOwners + 1;
  using Exchange = hz::MessageBatch<Line>;
#endif
};

template struct hz::Composition<Line>;
