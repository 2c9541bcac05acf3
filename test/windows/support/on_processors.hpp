// SPDX-License-Identifier: Apache-2.0
//
// Moves the calling thread from processor to processor, and lets it run on all of them again in the end; on
// Windows, of the first group. For tests of what is kept for each.
#pragma once

#include <windows.h>

#include <stdexcept>
#include <vector>

namespace hz_test {

class OnProcessors {
 public:
  OnProcessors() {
    DWORD_PTR system = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &all_, &system) == 0)
      throw std::runtime_error("GetProcessAffinityMask");
    for (unsigned cpu = 0; cpu < 64; ++cpu)
      if ((all_ >> cpu & 1) != 0) numbers_.push_back(cpu);
  }
  ~OnProcessors() { SetThreadAffinityMask(GetCurrentThread(), all_); }
  OnProcessors(const OnProcessors&) = delete;
  OnProcessors& operator=(const OnProcessors&) = delete;

  std::size_t count() const { return numbers_.size(); }
  unsigned number(std::size_t which) const { return numbers_[which]; }
  // Of those that the process may use, counted from 0 and round about.
  void go_to(std::size_t which) const {
    const DWORD_PTR one = DWORD_PTR{1} << numbers_[which % numbers_.size()];
    if (SetThreadAffinityMask(GetCurrentThread(), one) == 0)
      throw std::runtime_error("SetThreadAffinityMask");
  }

 private:
  DWORD_PTR all_ = 0;
  std::vector<unsigned> numbers_;
};

}  // namespace hz_test
