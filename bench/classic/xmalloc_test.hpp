// SPDX-License-Identifier: Apache-2.0
//
// The workload of xmalloc_test, after Lever and Boreham: producers allocate batches of blocks, consumers free
// them, so no thread ever frees what it allocated. One queue is between all of them; a batch is itself a
// block of the allocator. Of T threads the first (T + 1) / 2 are producers; a single thread consumes each
// batch that it has produced. An iteration is one batch of one producer. Run by the classic family, and by a
// unit test with an allocator that keeps books.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/log_uniform.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct XmallocShape {
  explicit XmallocShape(const Run& run)
      : sizes(run.number("min_size"), run.number("max_size")),
        batch(run.number("batch")),
        queue(run.number("queue")),
        iterations(run.iterations()),
        touch(run.touch) {}

  LogUniform sizes;
  std::uint32_t batch;  // blocks in a batch
  std::uint32_t queue;  // batches that may wait
  std::uint64_t iterations;
  bool touch;
};

struct Batch {
  Batch* next;
  void* blocks[];  // shape.batch of them
};

// First in, first out, bounded; any number of producers and consumers.
class BatchQueue {
 public:
  BatchQueue(std::uint32_t capacity, unsigned producers) : capacity_(capacity), producers_(producers) {
    pthread_mutex_init(&lock_, nullptr);
    pthread_cond_init(&not_full_, nullptr);
    pthread_cond_init(&not_empty_, nullptr);
  }

  // Waits while the queue is full.
  void push(Batch* batch) {
    batch->next = nullptr;
    pthread_mutex_lock(&lock_);
    while (length_ == capacity_) pthread_cond_wait(&not_full_, &lock_);
    *(length_ == 0 ? &first_ : &last_->next) = batch;
    last_ = batch;
    high_water_ = std::max(high_water_, ++length_);
    pthread_mutex_unlock(&lock_);
    pthread_cond_signal(&not_empty_);
  }

  // Waits while the queue is empty; null when it is empty and all producers have ended.
  Batch* pop() {
    pthread_mutex_lock(&lock_);
    while (length_ == 0 && producers_ != 0) pthread_cond_wait(&not_empty_, &lock_);
    Batch* batch = length_ != 0 ? first_ : nullptr;
    if (batch != nullptr) {
      first_ = batch->next;
      --length_;
    }
    pthread_mutex_unlock(&lock_);
    pthread_cond_signal(&not_full_);
    return batch;
  }

  // A producer will push nothing more.
  void end_producer() {
    pthread_mutex_lock(&lock_);
    --producers_;
    pthread_mutex_unlock(&lock_);
    pthread_cond_broadcast(&not_empty_);
  }

  // In batches; to be read when all threads have stopped.
  std::uint32_t high_water() const { return high_water_; }

 private:
  // Invariant: first_ leads to last_ by length_ - 1 links; both mean nothing while length_ is 0.
  pthread_mutex_t lock_;
  pthread_cond_t not_full_;
  pthread_cond_t not_empty_;
  Batch* first_ = nullptr;
  Batch* last_ = nullptr;
  std::uint32_t length_ = 0;
  std::uint32_t high_water_ = 0;
  std::uint32_t capacity_;
  unsigned producers_;
};

template <class Allocator>
class XmallocTest {
 public:
  XmallocTest(const XmallocShape& shape, BatchQueue& queue) : shape_(shape), queue_(queue) {}

  Tally produce(Xorshift64Star random) {
    Caller<Allocator> caller;
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) {
      Batch* batch = make(caller, random);
      for (std::uint32_t sent = 0; sent <= shape_.batch; ++sent)
        caller.sent();  // the batch itself travels, too
      queue_.push(batch);
    }
    queue_.end_producer();
    return caller.tally();
  }

  Tally consume() {
    Caller<Allocator> caller;
    while (Batch* batch = queue_.pop()) free_batch(caller, batch);
    return caller.tally();
  }

  // The only thread.
  Tally produce_and_consume(Xorshift64Star random) {
    Caller<Allocator> caller;
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) free_batch(caller, make(caller, random));
    return caller.tally();
  }

 private:
  Batch* make(Caller<Allocator>& caller, Xorshift64Star& random) {
    auto* batch = static_cast<Batch*>(caller.allocate(sizeof(Batch) + shape_.batch * sizeof(void*)));
    for (std::uint32_t i = 0; i < shape_.batch; ++i) {
      const std::size_t size = shape_.sizes.draw(random);
      batch->blocks[i] = caller.allocate(size);
      if (shape_.touch) write_ends(batch->blocks[i], size);
    }
    return batch;
  }

  void free_batch(Caller<Allocator>& caller, Batch* batch) {
    for (std::uint32_t i = 0; i < shape_.batch; ++i) caller.release(batch->blocks[i]);
    caller.release(batch);
  }

  XmallocShape shape_;
  BatchQueue& queue_;
};

}  // namespace hz::bench
