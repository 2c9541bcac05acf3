// SPDX-License-Identifier: Apache-2.0
//
// Slots that are collected one by one, as a list.
// says: needs bundles that are arrays
#include "base/free_list.hpp"
#include "line/hz8.hpp"

struct Line : hz::Hz8 {
#ifndef HZ_COMPLETE
  struct Front : hz::Hz8::Front {
    using Bundle = hz::Chain;
  };
  struct Exchange : hz::Hz8::Exchange {
    using Bundle = hz::Chain;
  };
#endif
};

template struct hz::Composition<Line>;
