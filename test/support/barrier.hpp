// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait for each other, by pthreads: known to every sanitizer, and without the lost wake-ups that
// std::barrier of libstdc++ 12 has on Windows.
#pragma once

#include <pthread.h>

namespace hz_test {

class Barrier {
 public:
  explicit Barrier(unsigned threads) { pthread_barrier_init(&barrier_, nullptr, threads); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  void Wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

}  // namespace hz_test
