// SPDX-License-Identifier: Apache-2.0
//
// Threads for the stress tests, by pthreads: they allocate nothing of ours, and may be started in the child
// of a fork.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "support/barrier.hpp"

namespace hz_test {

// Runs while the object lives, and is joined at its end.
class Thread {
 public:
  explicit Thread(std::function<void()> work) : work_(std::move(work)) {
    started_ = pthread_create(&thread_, nullptr, &Thread::Run, this) == 0;
    EXPECT_TRUE(started_);
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { Join(); }

  void Join() {
    if (started_) pthread_join(thread_, nullptr);
    started_ = false;
  }
  pthread_t Handle() const { return thread_; }

 private:
  static void* Run(void* self) {
    static_cast<Thread*>(self)->work_();
    return nullptr;
  }

  std::function<void()> work_;
  pthread_t thread_ = {};
  bool started_ = false;
};

// Runs work(0) … work(threads - 1) at the same time; returns when all are done.
template <class Work>
void Together(unsigned threads, Work work) {
  std::vector<std::unique_ptr<Thread>> running;
  for (unsigned i = 0; i < threads; ++i) running.push_back(std::make_unique<Thread>([i, &work] { work(i); }));
}

}  // namespace hz_test
