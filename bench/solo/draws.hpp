// SPDX-License-Identifier: Apache-2.0
//
// Which slot and which size an iteration of a solo lane has. Drawn once per iteration by slot_loop.hpp; costs
// one random number and two multiplications (upstream: two divisions).
#pragma once

#include <cstdint>

#include "lane/lane.hpp"
#include "lane/random.hpp"

namespace hz::bench {

struct Pick {
  std::uint32_t slot;
  std::uint32_t size;
};

// What is drawn from.
struct Field {
  std::uint32_t slots;
  std::uint32_t min_size;
  std::uint32_t max_size;
  constexpr std::uint32_t span() const { return max_size - min_size + 1; }
};

// 32 random bits brought into [0, bound).
constexpr std::uint32_t scaled(std::uint32_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{bits} * bound) >> 32);
}

constexpr std::uint32_t high_half(std::uint64_t number) { return static_cast<std::uint32_t>(number >> 32); }
constexpr std::uint32_t low_half(std::uint64_t number) { return static_cast<std::uint32_t>(number); }

// One number gives slot and size: in fair mode by its two halves, in upstream mode the whole of it modulo
// either.
template <Mode kMode>
class OneNumber {
 public:
  OneNumber(const Field& field, std::uint64_t seed, unsigned thread)
      : field_(field), random_(make_random<kMode>(seed, thread)) {}

  Pick next() {
    const auto number = random_.next();
    if constexpr (kMode == Mode::kFair) {
      return {scaled(high_half(number), field_.slots),
              field_.min_size + scaled(low_half(number), field_.span())};
    } else {
      return {number % field_.slots, field_.min_size + number % field_.span()};
    }
  }

 private:
  Field field_;
  decltype(make_random<kMode>(0, 0)) random_;
};

// Sizes as an application's: many small, few large.
class Application {
 public:
  Application(const Field& field, std::uint64_t seed, unsigned thread)
      : slots_(field.slots), random_(make_random<Mode::kFair>(seed, thread)) {}

  Pick next() {
    const std::uint64_t number = random_.next();
    return {scaled(high_half(number), slots_), size(low_half(number))};
  }

 private:
  // The percentile decides on the range; what is left of the bits is as random, and decides on the size
  // within it.
  static constexpr std::uint32_t size(std::uint32_t bits) {
    const std::uint64_t percentiles = std::uint64_t{bits} * 100;
    const std::uint32_t rest = low_half(percentiles);
    if (high_half(percentiles) < 80) return 16 + scaled(rest, 256 - 16 + 1);
    if (high_half(percentiles) < 95) return 257 + scaled(rest, 2'048 - 257 + 1);
    return 2'049 + scaled(rest, 32'768 - 2'049 + 1);
  }

  std::uint32_t slots_;
  decltype(make_random<Mode::kFair>(0, 0)) random_;
};

class InTurn {
 public:
  InTurn(const Field& field, std::uint64_t seed, unsigned thread)
      : field_(field), random_(make_random<Mode::kFair>(seed, thread)) {}

  Pick next() {
    const std::uint32_t slot = next_slot_;
    next_slot_ = slot + 1 == field_.slots ? 0 : slot + 1;
    return {slot, field_.min_size + random_.below(field_.span())};
  }

 private:
  Field field_;
  decltype(make_random<Mode::kFair>(0, 0)) random_;
  std::uint32_t next_slot_ = 0;
};

}  // namespace hz::bench
