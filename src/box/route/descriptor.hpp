// SPDX-License-Identifier: Apache-2.0
//
// Route by descriptors: one word per span, in a flat table at the arena's start, has its class and its owner.
// The slot's own state (guard slot_state) has the rest, so the route needs no finer grain. Used by hz5, hz6
// and hz8. A span that changes its owner is one store.
#pragma once

#include "box/route/page_tag.hpp"

namespace hz {

using Descriptor = FlatTags<kGranuleShift, std::uint64_t>;

}  // namespace hz
