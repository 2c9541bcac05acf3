// SPDX-License-Identifier: Apache-2.0
//
// The family of latency lanes, as `lane` calls it.
#pragma once

#include "lane/lane.hpp"
#include "lane/record.hpp"

namespace hz::bench {

void run_latency(const Run& run, Record& record);

}  // namespace hz::bench
