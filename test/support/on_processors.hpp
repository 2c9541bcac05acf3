// SPDX-License-Identifier: Apache-2.0
//
// Moves the calling thread from processor to processor, and lets it run on all of them again in the end. For
// tests of what is kept for each.
#pragma once

#include <sched.h>

#include <stdexcept>
#include <vector>

namespace hz_test {

class OnProcessors {
 public:
  OnProcessors() {
    if (sched_getaffinity(0, sizeof all_, &all_) != 0) throw std::runtime_error("sched_getaffinity");
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &all_)) numbers_.push_back(static_cast<unsigned>(cpu));
  }
  ~OnProcessors() { sched_setaffinity(0, sizeof all_, &all_); }
  OnProcessors(const OnProcessors&) = delete;
  OnProcessors& operator=(const OnProcessors&) = delete;

  std::size_t count() const { return numbers_.size(); }
  unsigned number(std::size_t which) const { return numbers_[which]; }
  // Of those that the process may use, counted from 0 and round about.
  void go_to(std::size_t which) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(numbers_[which % numbers_.size()], &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("sched_setaffinity");
  }

 private:
  cpu_set_t all_;
  std::vector<unsigned> numbers_;
};

}  // namespace hz_test
