// SPDX-License-Identifier: Apache-2.0
//
// What a scenario of the explorer is made of: some threads that run the real code of the headers, and what
// must hold at their end. Each is run many times, by another order of its threads and with other values for
// what they may see (explorer.cpp). Used by the scenarios in this folder; everything here is deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>

#ifndef HZ_EXPLORE
#define HZ_EXPLORE ""
#endif

namespace hz_test::explorer {

// One execution. What it makes lies at the same addresses each time, and is gone at its end.
class Execution {
 public:
  template <class T>
  T& make() {
    return *::new (room(sizeof(T), alignof(T))) T();
  }
  // What needs more of it itself.
  template <class T>
  T& make_of() {
    return *::new (room(sizeof(T), alignof(T))) T(*this);
  }
  void* room(std::size_t bytes, std::size_t alignment);
  void thread(std::function<void()> steps);
  // Whether it is right that nobody goes on although a thread waits; otherwise it never is.
  void may_wait(std::function<bool()> is_right);
  // When all threads have ended, and each sees what all of them did.
  void finally(std::function<void()> check);
};

// Nothing goes on when it is false: what happened is printed, and how to see it again.
void expect(bool holds, const char* claim);

// Whose slots are: a slot that somebody has is given to nobody else, and none is lost.
void taken(const void* slot);           // by this thread, from the structure under test
void given(const void* slot);           // by this thread, to it
void starts_outside(const void* slot);  // a slot of this execution, which this thread has now
std::size_t outside();                  // how many somebody has

// Where the calling thread is from now on.
void on_cpu(unsigned cpu);
// The calling thread's number, from 0; before and after all of them there is none.
unsigned self();
bool is_running();
// A step of the scenario itself: others may run here, as if it had come to a word.
void others_may_run();
// What os::random_word() answers: at the begin of each execution the same.
inline constexpr std::uint64_t kDrawn = 0x9E3779B97F4A7C15U;
inline std::uint64_t drawn = kDrawn;
inline bool seems_alone = false;  // what os::has_one_thread() answers
// From here on the calling thread may end before any of its steps, as one that a fork left behind.
void may_be_cut_off();
// In this execution no barrier on all threads is to be had.
void refuse_barriers();
// The calling thread is in the child of a fork from here on: the others end wherever they are.
void go_on_in_a_child();

// Each scenario stands in one of these, at namespace scope. Those whose names do not begin with HZ_EXPLORE
// are not compiled: a mutant needs one of them. Of one whose executions are long, a share is run.
struct Scenario {
  __attribute__((always_inline)) Scenario(const char* its_name, void (*its_run)(Execution&))
      : Scenario(its_name, 1, its_run) {}
  __attribute__((always_inline))
  Scenario(const char* its_name, unsigned its_share, void (*its_run)(Execution&))
      : name(its_name), share(its_share) {
    if (__builtin_strncmp(its_name, HZ_EXPLORE, sizeof(HZ_EXPLORE) - 1) == 0) enlist(its_run);
  }
  const char* name;
  unsigned share;  // one in so many
  void (*run)(Execution&) = nullptr;
  Scenario* next = nullptr;

 private:
  void enlist(void (*its_run)(Execution&));
};

}  // namespace hz_test::explorer
