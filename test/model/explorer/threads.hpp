// SPDX-License-Identifier: Apache-2.0
//
// Included before all else: the explorer's threads are coroutines of one thread, and each of them has its own
// count of locks (os/lock.hpp).
#pragma once

#include "os/per_thread.hpp"

namespace hz::os {

struct LocksOfThread;
template <>
class PerThread<LocksOfThread> {
 public:
  static LocksOfThread& mine();
};

}  // namespace hz::os
