// SPDX-License-Identifier: Apache-2.0
//
// Size classes: steps of 16 bytes to 128, then eight per doubling to 16 KiB and four to 4 MiB. Waste inside a
// block is at most 1/9 of it, above 16 KiB 1/5, most of which is pages that nobody touches. Bin 0 means
// "nothing", so that a zero tag is never a class. Used by every box; the hot lookup is one load from a table
// of 8 KiB (no branch on the size, which mixes unpredictably; as much of it is in use as sizes are), the scan
// is for what lies above.
//
//   16-byte slots ... 64 KiB: one granule per span, floor(64 KiB / slot) slots
//   above 64 KiB ... 4 MiB:   one slot per span of whole granules
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace hz {

using Bin = std::size_t;  // the machine word: it indexes without a further instruction

inline constexpr std::size_t kSmallMax = 2 * kKiB;
inline constexpr std::size_t kMediumMax = 64 * kKiB;
inline constexpr std::size_t kLargeMax = 4 * kMiB;
inline constexpr std::size_t kTableMax = 128 * kKiB;
inline constexpr std::size_t kMinAlign = 16;

// Eight classes per doubling from kFineMin to here. At kFineMin there would be four everywhere.
inline constexpr std::size_t kFineMin = 128, kFineMax = 16 * kKiB;
inline constexpr unsigned kFineMinLog = log2_floor(kFineMin), kFineMaxLog = log2_floor(kFineMax);
inline constexpr Bin kLastFineBin = kFineMin / kMinAlign + Bin{kFineMaxLog - kFineMinLog} * 8;

// Sizes 1 to kLargeMax. The bit scan: the three or two bits below the highest choose among the classes of a
// doubling.
HZ_INLINE constexpr Bin scan_bin(std::size_t size) {
  const std::size_t m = size - 1;
  if (m < kFineMax) {
    const unsigned b = log2_floor(m | kFineMin);
    return (m >> (b - 3)) + Bin{b - kFineMinLog} * 8 + 1;
  }
  const unsigned b = log2_floor(m);
  return (m >> (b - 2)) + Bin{b - kFineMaxLog} * 4 + kLastFineBin - 3;
}
HZ_INLINE constexpr std::size_t size_of_bin(Bin bin) {
  if (bin <= kFineMin / kMinAlign) return bin * kMinAlign;
  if (bin <= kLastFineBin) {
    const std::size_t step = bin - kFineMin / kMinAlign - 1;
    return (9 + (step & 7)) << ((step >> 3) + kFineMinLog - 3);
  }
  const std::size_t step = bin - kLastFineBin - 1;
  return (5 + (step & 3)) << ((step >> 2) + kFineMaxLog - 2);
}

inline constexpr Bin kLastSmallBin = scan_bin(kSmallMax);
inline constexpr Bin kLastMediumBin = scan_bin(kMediumMax);
inline constexpr Bin kLastBin = scan_bin(kLargeMax);
inline constexpr Bin kHugeBin = kLastBin + 1;  // mapped as a run of its own, never cached
inline constexpr unsigned kBins = kLastBin + 1;

struct ClassTables {
  std::array<std::uint8_t, kTableMax / kMinAlign> bin_of{};  // by (size - 1) / 16
  std::array<std::uint32_t, kBins> size{};
  std::array<std::uint32_t, kBins + 1> reciprocal{};  // ceil(2^32 / size), sizes of one granule at most
};

consteval ClassTables make_class_tables() {
  ClassTables t;
  for (std::size_t i = 0; i < t.bin_of.size(); ++i)
    t.bin_of[i] = static_cast<std::uint8_t>(scan_bin((i + 1) * kMinAlign));
  for (Bin bin = 1; bin < kBins; ++bin) {
    const std::size_t size = size_of_bin(bin);
    t.size[bin] = static_cast<std::uint32_t>(size);
    const std::uint64_t divisor = size < kGranule ? size : kGranule;
    t.reciprocal[bin] = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + divisor - 1) / divisor);
  }
  return t;
}

inline constexpr ClassTables kClasses = make_class_tables();

HZ_INLINE constexpr std::size_t bin_size(Bin bin) { return kClasses.size[bin]; }
HZ_INLINE constexpr bool is_large(Bin bin) { return bin > kLastMediumBin; }
HZ_INLINE constexpr unsigned bin_slots(Bin bin) {
  return is_large(bin) ? 1U : static_cast<unsigned>(kGranule / bin_size(bin));
}
HZ_INLINE constexpr unsigned bin_granules(Bin bin) {
  return static_cast<unsigned>((bin_size(bin) + kGranule - 1) >> kGranuleShift);
}

// Index of the slot that the byte at `offset` of a granule lies in: a multiplication, exact for offsets below
// 64 KiB.
HZ_INLINE constexpr unsigned slot_index(Bin bin, unsigned offset) {
  return static_cast<unsigned>((std::uint64_t{offset} * kClasses.reciprocal[bin]) >> 32);
}

// Whether `offset` (below 64 KiB) is a multiple of the slot size, without a division: for multiples the low
// half of offset * reciprocal stays below 2^16, for all others it does not (proved exhaustively by a unit
// test). Idea: D. Lemire, O. Kaser, N. Kurz, "Faster remainder by direct computation", 2019.
HZ_INLINE constexpr bool is_slot_start(Bin bin, unsigned offset) {
  return static_cast<std::uint32_t>(offset * kClasses.reciprocal[bin]) <= 0xFFFF;
}

// The smallest class whose slots all lie on multiples of `alignment` (at most one granule); kHugeBin if none.
HZ_INLINE constexpr Bin aligned_bin(std::size_t size, std::size_t alignment) {
  if (size <= kMediumMax && alignment <= kGranule) {
    Bin bin = kClasses.bin_of[((size < alignment ? alignment : size) - 1) / kMinAlign];
    while ((bin_size(bin) & (alignment - 1)) != 0) ++bin;  // ends at a power of two, at most seven steps away
    return bin;
  }
  return size <= kLargeMax && alignment <= kGranule ? scan_bin(size) : kHugeBin;
}

}  // namespace hz
