// SPDX-License-Identifier: Apache-2.0
//
// Threads that do what they are told and sleep in between, as the threads of a service do: they live, and do
// not touch the heap. Called by the tests of memory that comes back.
#pragma once

#include <condition_variable>
#include <mutex>

#include "stress/threads.hpp"

namespace hz_test {

class Crew {
 public:
  explicit Crew(unsigned threads) : asked_(threads, 0) {
    for (unsigned i = 0; i < threads; ++i)
      threads_.push_back(std::make_unique<Thread>([this, i] { Serve(i); }));
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    Wait();
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      end_ = true;
    }
    change_.notify_all();
    threads_.clear();
  }

  unsigned Size() const { return static_cast<unsigned>(threads_.size()); }

  // work(i) on each thread i below `count`; returns when all have done it and sleep again.
  void Run(std::function<void(unsigned)> work, unsigned count = ~0U) {
    Start(std::move(work), count);
    Wait();
  }
  void Start(std::function<void(unsigned)> work, unsigned count = ~0U) {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      work_ = std::move(work);
      for (unsigned i = 0; i < asked_.size() && i < count; ++i) {
        asked_[i] = 1;
        ++busy_;
      }
    }
    change_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> hold(mutex_);
    change_.wait(hold, [this] { return busy_ == 0; });
  }

 private:
  void Serve(unsigned i) {
    std::unique_lock<std::mutex> hold(mutex_);
    for (;;) {
      change_.wait(hold, [this, i] { return end_ || asked_[i] != 0; });
      if (asked_[i] == 0) return;
      asked_[i] = 0;
      hold.unlock();
      work_(i);
      hold.lock();
      if (--busy_ == 0) change_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable change_;
  std::function<void(unsigned)> work_;
  std::vector<char> asked_;
  unsigned busy_ = 0;
  bool end_ = false;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace hz_test
