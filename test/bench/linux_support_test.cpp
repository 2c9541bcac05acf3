// SPDX-License-Identifier: Apache-2.0
//
// What the harness reads of its own process from /proc, on Linux.
#include <gtest/gtest.h>

#include "support/process.hpp"

namespace hz::bench {
namespace {

TEST(Process, MissingKeyIsZero) { EXPECT_EQ(proc_kib("/proc/self/status", "\nNoSuchKey:"), 0U); }

}  // namespace
}  // namespace hz::bench
