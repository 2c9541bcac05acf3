// SPDX-License-Identifier: Apache-2.0
//
// Shared words that the hot path touches with plain instructions. A `std::atomic` would split `x += 1` into three
// instructions and keep `cmp` from reading memory; the machine's plain accesses to an aligned word are what a relaxed
// atomic asks for. Under ThreadSanitizer they are relaxed atomics.
#pragma once

#include "base/compiler.hpp"

namespace hz {

// Written by one thread, read by others at any time: counters and capacities of a thread's own state.
template <class T>
class OwnerWord {
 public:
  // Owner only.
  HZ_INLINE T add(T delta) {
    if constexpr (kThreadSanitizer) {
      const T next = static_cast<T>(peek() + delta);
      set(next);
      return next;
    } else {
      return value_ = static_cast<T>(value_ + delta);
    }
  }
  HZ_INLINE void set(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
  // add(-1) < 0
  HZ_INLINE bool take_one_too_many() {
    if constexpr (kThreadSanitizer) {
      return add(-1) < 0;
    } else {
      return decrement_below_zero(value_);
    }
  }

  // Any thread; some recent value.
  HZ_INLINE T peek() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

 private:
  T value_ = 0;
};

// Written once, when the heap opens; read by any thread before and after.
template <class T>
class OnceWord {
 public:
  constexpr explicit OnceWord(T before) : value_(before) {}

  HZ_INLINE T get() const {
    if constexpr (kThreadSanitizer) {
      return __atomic_load_n(&value_, __ATOMIC_RELAXED);
    } else {
      return value_;
    }
  }
  void set(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }

 private:
  T value_;
};

}  // namespace hz
