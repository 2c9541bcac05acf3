// SPDX-License-Identifier: Apache-2.0
//
// How a process has ended, for death tests.
#pragma once

#include <gtest/gtest.h>

#include <csignal>

namespace hz_test {

inline bool EndedByAbort(int status) { return ::testing::KilledBySignal(SIGABRT)(status); }

}  // namespace hz_test
