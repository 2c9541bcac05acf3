// SPDX-License-Identifier: Apache-2.0
//
// The threads of a larson lane. Called by the classic family.
#pragma once

#include "lane/lane.hpp"
#include "lane/record.hpp"

namespace hz::bench {

void run_larson(const Run& run, Record& record);

}  // namespace hz::bench
