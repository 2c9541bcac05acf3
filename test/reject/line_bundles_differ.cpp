// SPDX-License-Identifier: Apache-2.0
//
// Boxes that pass slots to each other in two forms.
// says: need one type of Bundle
#include "box/exchange/magazine_depot.hpp"
#include "line/hz3.hpp"

struct Line : hz::Hz3 {
#ifndef HZ_COMPLETE
  using Exchange = hz::MagazineDepot<Line>;
#endif
};

template struct hz::Composition<Line>;
