// SPDX-License-Identifier: Apache-2.0
//
// The chance of samples: see sampling.hpp.
#include "heap/samples/sampling.hpp"

#include "os/os.hpp"

namespace hz {
namespace {

std::uint64_t number(Random& random) {
  if (!random.is_seeded()) random = Random(os::random_word() ^ address(&random));
  return random.next();
}

// The library has no mathematics of the C library's. -ln(u), u in (0, 1], by the series of artanh around the
// next power of two: to 12 digits.
double minus_log(double u) {
  constexpr double kLn2 = 0.69314718055994530942, kRoot = 0.70710678118654752440;
  double halvings = 0;
  while (u < 1.0 / 65536) u *= 65536, halvings += 16;
  while (u < kRoot) u *= 2, halvings += 1;
  const double t = (u - 1) / (u + 1), tt = t * t;
  double sum = 0;
  for (int n = 17; n > 0; n -= 2) sum = sum * tt + 1.0 / n;
  return halvings * kLn2 - 2 * t * sum;
}
// Exponentially distributed, of mean 1.
double exponential(Random& random) {
  return minus_log(static_cast<double>((number(random) >> 11) + 1) * 0x1p-53);
}

// Samples of the profile in an allocation of so many bytes, on average.
double profile_rate(const Rates& rates, std::size_t bytes) {
  return rates.interval == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(rates.interval);
}
// The same of guarded ones: exp(-rate) is 1 - 1 / N.
double guarded_rate(const Rates& rates, std::size_t bytes) {
  constexpr double kCertain = 40;
  if (rates.every == 0 || bytes > GuardedPool::state.page) return 0;
  return rates.every == 1 ? kCertain : minus_log(1 - 1 / static_cast<double>(rates.every));
}
// A number between 0 and 1.
double uniform(Random& random) { return static_cast<double>(number(random) >> 11) * 0x1p-53; }

}  // namespace

// 1 - exp(-x), without a difference of numbers that are close: by its series where x is small, and doubled
// from there.
double Sampling::chance_of(double x) {
  unsigned halvings = 0;
  for (; x > 0.125; ++halvings) x /= 2;
  double p = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7))))));
  for (; halvings != 0; --halvings) p *= 2 - p;
  return p;
}

void Sampling::draw(Countdown& countdown, Bin bin, std::size_t bytes) {
  constexpr std::uint64_t kNever = std::uint64_t{1} << 62;
  std::uint64_t& left = countdown.left[bin];
  if (left != 0) return;
  const double rate = profile_rate(countdown.rates, bytes) + guarded_rate(countdown.rates, bytes);
  const double until = rate == 0 ? 0x1p62 : exponential(countdown.random) / rate;
  left = until < 0x1p62 ? 1 + static_cast<std::uint64_t>(until) : kNever;
}

Sample Sampling::next(Countdown& countdown, Bin bin, std::size_t bytes, bool own) {
  const double profile = profile_rate(countdown.rates, bytes);
  bool guarded = false;
  if (bin == kHugeBin) {
    if (profile == 0 || exponential(countdown.random) >= profile) return Sample::kNone;
  } else {
    draw(countdown, bin, bytes);
    if (--countdown.left[bin] != 0) return Sample::kNone;
    const double other = guarded_rate(countdown.rates, bytes);
    guarded = other != 0 && uniform(countdown.random) * chance_of(profile + other) >= chance_of(profile);
  }
  if (own) return Sample::kNone;
  if (guarded) return Sample::kOwned;
  return HeapProfile::has_room() ? Sample::kRecorded : Sample::kNone;
}

HZ_COLD void* Sampling::map_quota(std::size_t bytes) {
  const std::size_t page = os::page_bytes(), whole = align_up(bytes, page);
  void* const at = os::map(whole, page);
  if (at == nullptr) return nullptr;
  os::forbid_huge_pages(at, whole);
  metadata().fetch_add(whole, std::memory_order_relaxed);
  return at;
}
HZ_COLD void Sampling::unmap_quota(void* quota, std::size_t bytes) {
  const std::size_t whole = align_up(bytes, os::page_bytes());
  metadata().fetch_sub(whole, std::memory_order_relaxed);
  os::unmap(quota, whole);
}

}  // namespace hz
