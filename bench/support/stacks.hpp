// SPDX-License-Identifier: Apache-2.0
//
// Stacks for the threads of a run. They are ours, because the C library keeps those it made after the join,
// which would count as `after`. Used by the crew and by lanes that start threads of their own.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "support/mapping.hpp"

namespace hz::bench {

class Stacks {
 public:
  explicit Stacks(unsigned count) : mapping_(count * kBytes, false) {}

  // Starts a thread on the stack `which`, on which none runs. Returns 0, or what is in the way.
  int start(unsigned which, pthread_t& thread, void* (*entry)(void*), void* argument) const {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int error = pthread_attr_setstack(&attributes, mapping_.data() + which * kBytes, kBytes);
    if (error == 0) error = pthread_create(&thread, &attributes, entry, argument);
    pthread_attr_destroy(&attributes);
    return error;
  }

  std::size_t resident_kib() const { return mapping_.resident_kib(); }

 private:
  // Address space of a stack; an allocator may put much thread-local data here.
  static constexpr std::size_t kBytes = 2 * 1024 * 1024;

  Mapping mapping_;
};

}  // namespace hz::bench
