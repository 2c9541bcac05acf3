// SPDX-License-Identifier: Apache-2.0
//
// The number that Windows gives the calling thread.
#pragma once

#include <windows.h>

namespace hz_test {

inline unsigned long ThreadNumber() { return GetCurrentThreadId(); }

}  // namespace hz_test
