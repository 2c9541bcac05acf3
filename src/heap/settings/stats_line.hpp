// SPDX-License-Identifier: Apache-2.0
//
// The one statistics line, as text or as JSON: its words, and the order of its fields, which is that of
// hz_stats_t. Called at exit, when SIGTERM ends the process, and by malloc_stats.
#pragma once

#include "hakozuna/hakozuna.h"
#include "heap/settings/options.hpp"
#include "os/message.hpp"

namespace hz {

// `incomplete`: not every lock was to be had in time.
os::LongMessage& compose_stats(os::LongMessage& message, const char* line, const hz_stats_t& stats,
                               StatsFormat format, bool incomplete);

}  // namespace hz
