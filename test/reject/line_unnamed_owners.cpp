// SPDX-License-Identifier: Apache-2.0
//
// Owners that the route cannot tell apart.
// says: an exchange with owners needs a route that names them
#include "box/route/byte_tag.hpp"
#include "line/hz4.hpp"

struct Line : hz::Hz4 {
#ifndef HZ_COMPLETE
  using Route = hz::ByteTag;
#endif
};

template struct hz::Composition<Line>;
