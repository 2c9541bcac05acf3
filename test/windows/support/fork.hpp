// SPDX-License-Identifier: Apache-2.0
//
// Windows has no forks: tests that ask for one are skipped.
#pragma once

namespace hz_test {

inline constexpr bool kForks = false;

template <class Work>
int InAFork(Work) {
  return -1;
}

}  // namespace hz_test
