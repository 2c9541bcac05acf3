// SPDX-License-Identifier: Apache-2.0
//
// What one thread of an interleaved lane does. Called by the interleaved lanes with malloc and by the unit
// tests with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interleaved/inbox.hpp"
#include "lane/allocator.hpp"
#include "lane/backlog.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

// The numbers of an interleaved lane, out of its definition.
struct ExchangeShape {
  ExchangeShape() = default;
  explicit ExchangeShape(const Run& run)
      : min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        iterations(run.iterations()),
        remote_percent(run.number("remote_percent")),
        drain_every(run.number("drain_every")),
        final_pairs(run.number("final_pairs")),
        locked_drain(run.mode == Mode::kUpstream),
        touch(run.touch),
        written(run.written) {}

  std::uint32_t min_size = 0;
  std::uint32_t max_size = 0;
  std::uint64_t iterations = 0;
  std::uint32_t remote_percent = 0;
  std::uint32_t drain_every = 0;
  std::uint32_t final_pairs = 0;
  bool locked_drain = false;
  bool touch = true;
  bool written = false;
};

template <class Allocator>
class Exchange {
 public:
  // `inboxes`: one per thread; that of `self` is the one drained here.
  Exchange(const ExchangeShape& shape, Inbox<Allocator>* inboxes, unsigned threads, unsigned self,
           Backlog<Inbox<Allocator>>& backlog)
      : shape_(shape), inboxes_(inboxes), threads_(threads), self_(self), backlog_(backlog) {}

  template <class Random>
  void iterate(Random random) {
    const ExchangeShape shape = shape_;  // copies: the allocator is opaque
    const std::uint32_t span = shape.max_size - shape.min_size + 1;
    for (std::uint64_t i = 0; i < shape.iterations; ++i) {
      if (i % shape.drain_every == 0) drain();
      const std::size_t size = shape.min_size + random.below(span);
      void* p = allocate(size);
      if (random.below(100) < shape.remote_percent) {
        inboxes_[receiver(random)].add(p);
        ++sent_;
      } else {
        Allocator::release(p);
      }
    }
  }

  void drain() {
    Inbox<Allocator>& mine = inboxes_[self_];
    if (mine.waiting() > kOverdue) backlog_.look();
    drained_ += shape_.locked_drain ? mine.drain_locked() : mine.drain();
  }

  // After everybody's last drain: an owner that learns of remote frees when it allocates gets the occasion
  // to.
  void final_pairs() {
    for (std::uint32_t i = 0; i < shape_.final_pairs; ++i) Allocator::release(allocate(shape_.min_size));
  }

  void close() { inboxes_[self_].close(); }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t drained() const { return drained_; }

 private:
  // A uniformly random other thread; a thread that is alone sends to itself.
  template <class Random>
  unsigned receiver(Random& random) const {
    return threads_ == 1 ? 0 : (self_ + 1 + random.below(threads_ - 1)) % threads_;
  }

  void* allocate(std::size_t size) {
    void* p = checked(Allocator::allocate(size));
    if (shape_.touch) write(p, size, shape_.written);
    return p;
  }

  ExchangeShape shape_;
  Inbox<Allocator>* inboxes_;
  unsigned threads_;
  unsigned self_;
  Backlog<Inbox<Allocator>>& backlog_;
  std::uint64_t sent_ = 0;
  std::uint64_t drained_ = 0;
};

}  // namespace hz::bench
