// SPDX-License-Identifier: Apache-2.0
//
// How large a test is: the seed (HZ_TEST_SEED), the duration of open-ended tests (HZ_TEST_SECONDS), the quick
// variants (HZ_TEST_TIER=quick), the long ones (HZ_TEST_LONG=1), and what sanitizers make slow. Called by the
// tests that run for long: stress and model.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>

#include "support/sanitizers.hpp"
#include "support/watchdog.hpp"

namespace hz_test {

inline std::uint64_t NumberFrom(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == 0 ? otherwise : std::strtoull(text, nullptr, 0);
}

inline bool Long() { return NumberFrom("HZ_TEST_LONG", 0) != 0; }

// `n`, or less where a sanitizer watches.
inline constexpr unsigned Scaled(unsigned n, unsigned sanitized) { return kUnderTool ? sanitized : n; }

// The daily tier, `hz test` without --all: what repeats itself does so less often.
inline bool Quick() {
  const char* tier = std::getenv("HZ_TEST_TIER");
  return tier != nullptr && std::strcmp(tier, "quick") == 0;
}

// How often something is repeated.
inline unsigned Rounds(unsigned n, unsigned sanitized) {
  return Quick() ? (Scaled(n, sanitized) + 7) / 8 : Scaled(n, sanitized);
}

// One seed a process: whatever it prints repeats it.
inline std::uint64_t Seed() {
  static const std::uint64_t seed = NumberFrom("HZ_TEST_SEED", std::random_device{}());
  return seed;
}

using Random = std::mt19937_64;

inline std::size_t Below(Random& random, std::size_t bound) { return random() % bound; }

// Small sizes as often as large ones: uniform in the logarithm, between 1 and 2^bits.
inline std::size_t LogSize(Random& random, unsigned bits) {
  const std::size_t top = std::size_t{1} << Below(random, bits + 1);
  return top / 2 + Below(random, top - top / 2) + 1;
}

}  // namespace hz_test
