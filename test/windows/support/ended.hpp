// SPDX-License-Identifier: Apache-2.0
//
// How a process has ended, for death tests, on Windows: abort() is told by an exit code.
#pragma once

namespace hz_test {

inline bool EndedByAbort(int status) { return status == 3; }

}  // namespace hz_test
