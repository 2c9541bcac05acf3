// SPDX-License-Identifier: Apache-2.0
//
// Where a thread of an interleaved lane receives blocks: a growable array under a mutex. The array comes from
// the measured allocator, as it would in a program; many senders, one receiver.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "lane/allocator.hpp"

namespace hz::bench {

// std::mutex would bring the C++ library into the process, which allocates before main does.
class Mutex {
 public:
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

template <class Allocator>
class Inbox {
 public:
  // Any thread.
  void add(void* p) {
    const std::lock_guard<Mutex> lock(mutex_);
    if (filling_.size == filling_.capacity) filling_.grow();
    filling_.blocks[filling_.size++] = p;
    waiting_.store(filling_.size, std::memory_order_relaxed);
  }

  // The receiver: frees all that has come and returns how many, holding the lock only to exchange two arrays.
  std::uint64_t drain() {
    {
      const std::lock_guard<Mutex> lock(mutex_);
      std::swap(filling_, spare_);
      waiting_.store(0, std::memory_order_relaxed);
    }
    return release_all(spare_);
  }

  // The same while holding the lock, so that senders wait for the allocator: the published shape.
  std::uint64_t drain_locked() {
    const std::lock_guard<Mutex> lock(mutex_);
    waiting_.store(0, std::memory_order_relaxed);
    return release_all(filling_);
  }

  // When nothing will be added any more and all is drained: gives the arrays back.
  void close() {
    Allocator::release(std::exchange(filling_, {}).blocks);
    Allocator::release(std::exchange(spare_, {}).blocks);
  }

  std::uint64_t high_water() const { return high_water_; }

  // Any thread.
  std::uint64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  struct Array {
    void** blocks = nullptr;
    std::size_t size = 0;
    std::size_t capacity = 0;

    void grow() {
      capacity = capacity == 0 ? 64 : 2 * capacity;
      blocks = static_cast<void**>(checked(Allocator::reallocate(blocks, capacity * sizeof(void*))));
    }
  };

  std::uint64_t release_all(Array& array) {
    const std::size_t count = std::exchange(array.size, 0);
    high_water_ =
        std::max<std::uint64_t>(high_water_, count);  // a backlog is longest just before it is drained
    std::for_each(array.blocks, array.blocks + count, Allocator::release);
    return count;
  }

  Mutex mutex_;
  Array filling_;  // under the mutex
  std::atomic<std::uint64_t> waiting_{0};
  Array spare_;  // the receiver's
  std::uint64_t high_water_ = 0;
};

}  // namespace hz::bench
