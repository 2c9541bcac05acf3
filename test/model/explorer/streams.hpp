// SPDX-License-Identifier: Apache-2.0
//
// For scenarios: glibc's open streams, as forks meet them. Their list has a lock, which fork takes behind the
// hooks and its owner may take again; a stream has one, whose owner allocates. Without begin() there are
// none.
#pragma once

#include "explorer.hpp"
#include "os/lock.hpp"
#include "os/os.hpp"

namespace hz_test::explorer {

struct Streams {
  static constexpr unsigned kMost = 4;  // threads
  static inline hz::os::Lock list, one;
  static inline unsigned times[kMost] = {};  // that a thread has the list
  static inline bool are_there = false;

  static void begin() {
    list.reset(), one.reset();
    for (unsigned& of : times) of = 0;
    are_there = true;
  }
  static void end() {
    expect(list.try_lock() && one.try_lock(), "a lock of streams is held by nobody");
    are_there = false;
  }
  static void lock() {
    if (times[self()]++ == 0) list.lock();
  }
  static void unlock() {
    if (--times[self()] == 0) list.unlock();
  }
  // As fork does between the hooks; and in a child, where the lock is a new one before any hook is called.
  static void fork() { lock(); }
  static void renew() { list.reset(), times[self()] = 0; }

  static void flush_all() {
    lock();
    one.lock();
    one.unlock();
    unlock();
  }
  template <class Read>
  static void read(Read allocates) {
    one.lock();
    allocates();
    one.unlock();
  }
};

}  // namespace hz_test::explorer

namespace hz::os {

inline bool lock_streams() {
  if (hz_test::explorer::Streams::are_there) hz_test::explorer::Streams::lock();
  return hz_test::explorer::Streams::are_there;
}
inline void unlock_streams() { hz_test::explorer::Streams::unlock(); }
inline void renew_streams() { hz_test::explorer::Streams::renew(); }

}  // namespace hz::os
