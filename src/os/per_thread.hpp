// SPDX-License-Identifier: Apache-2.0
//
// What each thread has of a type: PerThread<T>::mine(), made by T's own first values. The compiler's
// thread_local where a thread is born with its storage. macOS allocates that storage at a thread's first use
// of it, by malloc, which is us; and frees it before it tells us of the thread's end. There T lies in memory
// of ours, and a thread-specific key leads to it (posix_keyed.hpp). HZ_KEYED chooses that elsewhere, for
// tests. Called on every operation; costs what the compiler makes of thread_local, or a call and two loads.
#pragma once

#include "base/compiler.hpp"

#if defined(__APPLE__) || defined(HZ_KEYED)
#include "os/posix_keyed.hpp"
#endif

namespace hz::os {

#if defined(__APPLE__) || defined(HZ_KEYED)
template <class T>
using PerThread = Keyed<T>;
#else
template <class T>
class PerThread {
 public:
  HZ_INLINE static T& mine() { return mine_; }

 private:
  static inline constinit thread_local T mine_{};
};
#endif

}  // namespace hz::os
