// SPDX-License-Identifier: Apache-2.0
//
// The canary of a slot: a secret word in its last eight bytes, which also has the distance from the block's
// end to it. The value depends on its place, so a copy of one is wrong elsewhere.
// Used by: sealed.hpp. Cost: two loads, a multiplication and a few words of arithmetic.
//
//   canary == key of its place ^ distance, twice      of a slot without a block the distance is 0
//
// Key and factor are two random words of the process. One canary and its place do not give the keys; two or
// more narrow them down.
#pragma once

#include "base/plain_word.hpp"
#include "base/units.hpp"
#include "os/os.hpp"

namespace hz {

struct Canary {
  using Word = std::uint64_t __attribute__((may_alias));
  static constexpr std::size_t kBytes = sizeof(Word);

  static void open() {
    factor.set(os::random_word() | 1);
    key.set(os::random_word());
  }

  // Relaxed: other threads read the canary below their block, so it is right at any moment.
  HZ_INLINE static std::uint64_t at(std::uintptr_t end) {
    return __atomic_load_n(static_cast<const Word*>(pointer(end)), __ATOMIC_RELAXED);
  }
  HZ_INLINE static void write(std::uintptr_t end, std::uint64_t key_here, std::uint64_t distance) {
    __atomic_store_n(static_cast<Word*>(pointer(end)), key_here ^ distance * kTwice, __ATOMIC_RELAXED);
  }
  // The first byte is not zero, because a write of one byte too much often writes a zero.
  HZ_INLINE static std::uint64_t key_of(std::uintptr_t end) { return (end ^ key.get()) * factor.get() | 1; }

  // Returns true if this is what a canary and its key differ by.
  HZ_INLINE static bool is_distance(std::uint64_t word) { return word == distance_in(word) * kTwice; }
  HZ_INLINE static std::uint64_t distance_in(std::uint64_t word) { return static_cast<std::uint16_t>(word); }
  HZ_INLINE static bool is_valid(std::uintptr_t end) { return is_distance(at(end) ^ key_of(end)); }

 private:
  // A number of 16 bits times this stands there twice: of a word that is changed in part one differs.
  static constexpr std::uint64_t kTwice = 0x10001;

  static inline constinit OnceWord<std::uint64_t> key{0}, factor{0};
};

}  // namespace hz
