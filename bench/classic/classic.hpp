// SPDX-License-Identifier: Apache-2.0
//
// The family of the classic programs, as `lane` calls it.
#pragma once

#include "lane/lane.hpp"
#include "lane/record.hpp"

namespace hz::bench {

void run_classic(const Run& run, Record& record);

}  // namespace hz::bench
