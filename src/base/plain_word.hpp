// SPDX-License-Identifier: Apache-2.0
//
// Shared words that the hot path touches with plain instructions. A `std::atomic` would split `x += 1` into
// three instructions and keep `cmp` from reading memory; the machine's plain accesses to an aligned word are
// what a relaxed atomic asks for. Under ThreadSanitizer they are relaxed atomics.
#pragma once

#include "base/compiler.hpp"

namespace hz {

// Written by one thread, read by others at any time: counters and capacities of a thread's own state.
template <class T>
class OwnerWord {
 public:
  constexpr OwnerWord() = default;
  constexpr explicit OwnerWord(T value) : value_(value) {}

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
  // Release: earlier writes are visible to a thread that reads this value.
  HZ_INLINE void set_last(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  // Owner only: peek() and set(), as operands of other instructions.
  HZ_INLINE T get() const {
    if constexpr (kThreadSanitizer) {
      return peek();
    } else {
      return value_;
    }
  }
  HZ_INLINE void put(T value) {
    if constexpr (kThreadSanitizer) {
      set(value);
    } else {
      value_ = value;
    }
  }
  // add(-1) < 0
  HZ_INLINE bool take_one_too_many() {
    if constexpr (kThreadSanitizer) {
      return add(-1) < 0;
    } else {
      return decrement_below_zero(value_);
    }
  }

  // For any thread that has stopped the owner from writing, but for one store that may be on its way. Returns
  // the value before or after that store. Acquire and release: the memory that the value leads to is visible,
  // whichever thread wrote it.
  T take(T value) { return __atomic_exchange_n(&value_, value, __ATOMIC_ACQ_REL); }

  // Any thread; some recent value.
  HZ_INLINE T peek() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  // Acquire: pairs with set_last().
  HZ_INLINE T peek_first() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }

 private:
  T value_ = T{};
};

// Written when the heap opens, and hardly ever after; read by any thread at any time.
template <class T>
class OnceWord {
 public:
  constexpr OnceWord() = default;
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
  T value_ = T{};
};

// Written by any thread at any time, and read by one on its hot path: once for each get(), as by a relaxed
// atomic, to whose address GCC adds an offset by a separate instruction on Arm.
template <class T>
class SharedWord {
 public:
  constexpr explicit SharedWord(T value) : value_(value) {}

  HZ_INLINE T get() const {
    if constexpr (kThreadSanitizer) {
      return __atomic_load_n(&value_, __ATOMIC_RELAXED);
    } else {
      return *const_cast<const volatile T*>(&value_);
    }
  }
  void set(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }

 private:
  T value_;
};

}  // namespace hz
