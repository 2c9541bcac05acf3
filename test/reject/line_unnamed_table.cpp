// SPDX-License-Identifier: Apache-2.0
//
// A table of which the source hears only how long it is.
// says: a box with tables has to name each of them
#include "line/hz8.hpp"

struct Line : hz::Hz8 {
#ifndef HZ_COMPLETE
  struct Guard : hz::Hz8::Guard {
    static constexpr std::size_t kTables[] = {kDenseBytes};
  };
#endif
};

template struct hz::Composition<Line>;
