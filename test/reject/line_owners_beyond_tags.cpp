// SPDX-License-Identifier: Apache-2.0
//
// More owners than a tag can name.
// says: tags need room for every owner
#include "line/hz3.hpp"

struct Line : hz::Hz3 {
#ifndef HZ_COMPLETE
  struct Route : hz::Hz3::Route {
    static constexpr unsigned kMostOwners = Line::kOwners;  // and the one that nobody is?
  };
#endif
};

template struct hz::Composition<Line>;
