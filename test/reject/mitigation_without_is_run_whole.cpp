// SPDX-License-Identifier: Apache-2.0
//
// A mitigation that does not look at what was written behind a run.
#include "heap/state/mitigation.hpp"
#include "line/hakozuna.hpp"

struct Box : hz::Bare<hz::Hakozuna> {
#ifndef HZ_COMPLETE
  static bool is_run_whole(const void*) = delete;
#endif
};

static_assert(hz::MitigationContract<Box>);
