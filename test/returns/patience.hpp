// SPDX-License-Identifier: Apache-2.0
//
// Waits for what must happen within a time of sleep, on machines that are busy with other things: the time is
// as told, plus how long this process had to wait for a processor meanwhile, at most three times as long.
// Called by the tests of what the purger does; allocates nothing.
#pragma once

#include <ctime>

#include "returns/tasks.hpp"

namespace hz_test {

inline double Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline void SleepFor(double seconds) {
  timespec left = {static_cast<time_t>(seconds),
                   static_cast<long>((seconds - static_cast<double>(time_t(seconds))) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) != 0) {
  }
}

class Patience {
 public:
  explicit Patience(double seconds) : seconds_(seconds), began_(Now()), delay_(RunDelayNanoseconds()) {}

  double Passed() const { return Now() - began_; }

  // Sleeps for one more step; false when the time is over. What the own sleep was late counts as waiting,
  // too: the purger may have ended, and its delay with it.
  bool Wait(double step = 0.05) {
    const double before = Now();
    SleepFor(step);
    late_ += Now() - before - step;
    const std::uint64_t delay = RunDelayNanoseconds();
    const double waited = delay > delay_ ? static_cast<double>(delay - delay_) * 1e-9 : 0;
    const double allowed = seconds_ + (waited > late_ ? waited : late_);
    return Passed() < (allowed < 3 * seconds_ ? allowed : 3 * seconds_);
  }

 private:
  const double seconds_, began_;
  const std::uint64_t delay_;
  double late_ = 0;
};

// Whether `holds()` becomes true in time.
template <class Condition>
bool Within(double seconds, Condition holds) {
  Patience patience(seconds);
  while (!holds()) {
    if (!patience.Wait()) return holds();
  }
  return true;
}

}  // namespace hz_test
