// SPDX-License-Identifier: Apache-2.0
//
// Stacks for the threads of a run, on Windows: the system makes one for each thread, of 2 MiB as the linker
// says, and takes it back when the thread ends. Nobody counts what is resident of them.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace hz::bench {

class Stacks {
 public:
  explicit Stacks(unsigned) {}

  // Starts a thread. Returns 0, or what is in the way.
  int start(unsigned, pthread_t& thread, void* (*entry)(void*), void* argument) const {
    return pthread_create(&thread, nullptr, entry, argument);
  }

  std::size_t resident_kib() const { return 0; }
};

}  // namespace hz::bench
