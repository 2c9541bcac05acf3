// SPDX-License-Identifier: Apache-2.0
//
// Size classes: steps of 16 bytes to 128, then eight per doubling to 16 KiB and four to 4 MiB. Waste inside a
// block is at most 1/9 of it, above 16 KiB 1/5, most of which is untouched pages. Bin 0 means "nothing", so
// that a zero tag is never a class. Used by every box; the hot lookup is one load from a table of 8 KiB (no
// branch on the size, which mixes unpredictably; as much of it is in use as sizes are), the scan is for what
// lies above.
//
//   16-byte slots ... 64 KiB: one granule per span, floor(64 KiB / slot) slots
//   above 64 KiB ... 4 MiB:   one slot per span of whole granules
//
// Each doubling from 512 bytes to 16 KiB begins with a spare class, which no size has until it is dealt out:
// once in the life of a process, to sizes that the program asks for often and that waste much. From then on
// these have it; blocks that exist keep the class of their span. (Sizes of a page and a header are the usual
// case: those of 1,040 bytes waste a tenth in slots of 1,152.) A program that asks what a block to come will
// have gets the same answer ever after: no further class is dealt out to it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/layout.hpp"
#include "base/plain_word.hpp"
#include "base/units.hpp"

namespace hz {

using Bin = std::size_t;  // the machine word: it indexes without a further instruction

inline constexpr std::size_t kSmallMax = 2 * kKiB;
inline constexpr std::size_t kMediumMax = 64 * kKiB;
inline constexpr std::size_t kLargeMax = 4 * kMiB;
inline constexpr std::size_t kTableMax = 128 * kKiB;
inline constexpr std::size_t kMinAlign = 16;

// Eight classes per doubling from kFineMin to here. At kFineMin there would be four everywhere.
inline constexpr std::size_t kFineMin = 128, kFineMax = 16 * kKiB, kSpareMin = 512;
inline constexpr unsigned kFineMinLog = log2_floor(kFineMin), kFineMaxLog = log2_floor(kFineMax),
                          kSpareMinLog = log2_floor(kSpareMin), kSpares = kFineMaxLog - kSpareMinLog;
inline constexpr Bin kLastFineBin = kFineMin / kMinAlign + Bin{kFineMaxLog - kFineMinLog} * 8 + kSpares;
inline constexpr Bin kFirstSpare = kFineMin / kMinAlign + Bin{kSpareMinLog - kFineMinLog} * 8 + 1;

// The spare classes: every ninth bin from the first one on.
HZ_INLINE constexpr Bin spare_bin(unsigned spare) { return kFirstSpare + Bin{9} * spare; }
HZ_INLINE constexpr bool is_spare(Bin bin) {
  return bin >= kFirstSpare && bin <= kLastFineBin && (bin - kFirstSpare) % 9 == 0;
}

// Sizes 1 to kLargeMax, as long as no spare class was dealt out. The bit scan: the three or two bits below
// the highest choose among the classes of a doubling.
HZ_INLINE constexpr Bin scan_bin(std::size_t size) {
  const std::size_t m = size - 1;
  if (m < kSpareMin) {
    const unsigned b = log2_floor(m | kFineMin);
    return (m >> (b - 3)) + Bin{b - kFineMinLog} * 8 + 1;
  }
  if (m < kFineMax) {
    const unsigned b = log2_floor(m);
    return (m >> (b - 3)) + Bin{b - kSpareMinLog} * 9 + kFirstSpare - 7;
  }
  const unsigned b = log2_floor(m);
  return (m >> (b - 2)) + Bin{b - kFineMaxLog} * 4 + kLastFineBin - 3;
}
// Of a spare class: the least that it can be dealt.
HZ_INLINE constexpr std::size_t size_of_bin(Bin bin) {
  if (bin <= kFineMin / kMinAlign) return bin * kMinAlign;
  if (bin < kFirstSpare) {
    const std::size_t step = bin - kFineMin / kMinAlign - 1;
    return (9 + (step & 7)) << ((step >> 3) + kFineMinLog - 3);
  }
  if (bin <= kLastFineBin) {
    const std::size_t doubling = (bin - kFirstSpare) / 9, step = (bin - kFirstSpare) % 9;
    if (step == 0) return (kSpareMin << doubling) + kMinAlign;
    return (8 + step) << (doubling + kSpareMinLog - 3);
  }
  const std::size_t step = bin - kLastFineBin - 1;
  return (5 + (step & 3)) << ((step >> 2) + kFineMaxLog - 2);
}

inline constexpr Bin kLastSmallBin = scan_bin(kSmallMax);
inline constexpr Bin kLastMediumBin = scan_bin(kMediumMax);
inline constexpr Bin kLastBin = scan_bin(kLargeMax);
inline constexpr Bin kHugeBin = kLastBin + 1;  // mapped as one run, never cached
inline constexpr Bin kHeapBin = kHugeBin + 1;  // in a chunk of a first-class heap, which knows its size
inline constexpr unsigned kBins = kLastBin + 1;

// What the classes are. The hot path reads it with plain loads; any thread may deal a spare class out at any
// time.
class SizeClasses {
 public:
  constexpr SizeClasses() {
    for (std::size_t i = 0; i < kTableMax / kMinAlign; ++i)
      bin_of_[i] = OnceWord<std::uint8_t>(static_cast<std::uint8_t>(scan_bin((i + 1) * kMinAlign)));
    for (Bin bin = 1; bin < kBins; ++bin) {
      size_[bin] = OnceWord<std::uint32_t>(static_cast<std::uint32_t>(size_of_bin(bin)));
      reciprocal_[bin] = OnceWord<std::uint32_t>(reciprocal_of(size_of_bin(bin)));
    }
  }

  // Of sizes 1 to kTableMax, by (size - 1) / kMinAlign.
  HZ_INLINE Bin of(std::size_t number) const { return bin_of_[number].get(); }
  HZ_INLINE std::size_t size(Bin bin) const { return size_[bin].get(); }
  HZ_INLINE std::uint32_t reciprocal(Bin bin) const { return reciprocal_[bin].get(); }

  // Whether a spare class can have that size: its doubling has one, and no class has it anyway.
  static constexpr bool may_deal(std::size_t size) {
    return size > kSpareMin && size <= kFineMax && size % kMinAlign == 0 &&
           size_of_bin(scan_bin(size)) != size;
  }
  // Gives sizes from the class below up to `size` the spare class of their doubling. False if it cannot have
  // that size, was dealt out before, or classes are settled.
  bool deal(std::size_t size) {
    if (!may_deal(size) || settled_.get()) return false;
    const Bin above = scan_bin(size);
    const Bin spare = spare_bin(log2_floor(size - 1) - kSpareMinLog);
    bool before = false;
    if (!dealt_[(spare - kFirstSpare) / 9].compare_exchange_strong(before, true, std::memory_order_relaxed))
      return false;
    size_[spare].set(static_cast<std::uint32_t>(size));
    reciprocal_[spare].set(reciprocal_of(size));
    // Release: a thread that finds the class in the table finds its size, because it reads the size by the
    // class.
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t n = size / kMinAlign; n != 0 && bin_of_[n - 1].get() == above; --n)
      bin_of_[n - 1].set(static_cast<std::uint8_t>(spare));
    return true;
  }
  // Classes stay as they are, but for one that another thread deals out meanwhile.
  void settle() {
    if (!settled_.get()) settled_.set(true);
  }
  // How many were.
  unsigned dealt() const {
    unsigned count = 0;
    for (const std::atomic<bool>& one : dealt_) count += one.load(std::memory_order_relaxed) ? 1 : 0;
    return count;
  }

  static constexpr auto words() {
    return layout::Words<2>{layout::Word("class.size", offsetof(SizeClasses, size_), 4, kBins),
                            {"class.dealt", offsetof(SizeClasses, dealt_), 1, kSpares}};
  }

  // ceil(2^32 / size), sizes of one granule at most.
  static constexpr std::uint32_t reciprocal_of(std::size_t size) {
    const std::uint64_t divisor = size < kGranule ? size : kGranule;
    return static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + divisor - 1) / divisor);
  }

 private:
  std::array<OnceWord<std::uint8_t>, kTableMax / kMinAlign> bin_of_{};
  std::array<OnceWord<std::uint32_t>, kBins> size_{};
  std::array<OnceWord<std::uint32_t>, kHeapBin + 1> reciprocal_{};
  std::array<std::atomic<bool>, kSpares> dealt_{};
  OnceWord<bool> settled_{false};
};

inline constinit SizeClasses classes;

HZ_INLINE constexpr std::size_t bin_size(Bin bin) {
  if (std::is_constant_evaluated()) return size_of_bin(bin);
  return classes.size(bin);
}
HZ_INLINE constexpr bool is_large(Bin bin) { return bin > kLastMediumBin; }
HZ_INLINE constexpr unsigned bin_slots(Bin bin) {
  return is_large(bin) ? 1U : static_cast<unsigned>(kGranule / bin_size(bin));
}
HZ_INLINE constexpr unsigned bin_granules(Bin bin) {
  return static_cast<unsigned>((bin_size(bin) + kGranule - 1) >> kGranuleShift);
}

// Index of the slot that the byte at `offset` of a granule lies in: a multiplication, exact for offsets below
// 64 KiB.
class SlotIndex {
 public:
  HZ_INLINE explicit SlotIndex(Bin bin) : reciprocal_(classes.reciprocal(bin)) {}
  HZ_INLINE unsigned of(unsigned offset) const { return static_cast<unsigned>(offset * reciprocal_ >> 32); }

 private:
  const std::uint64_t reciprocal_;
};
HZ_INLINE unsigned slot_index(Bin bin, unsigned offset) { return SlotIndex(bin).of(offset); }

// Whether `offset` (below 64 KiB) is a multiple of the slot size, without a division: for multiples the low
// half of offset * reciprocal stays below 2^16, for all others it does not (proved exhaustively by a unit
// test). Idea: D. Lemire, O. Kaser, N. Kurz, "Faster remainder by direct computation", 2019.
HZ_INLINE bool is_slot_start(Bin bin, unsigned offset) {
  return static_cast<std::uint32_t>(offset * classes.reciprocal(bin)) <= 0xFFFF;
}

// The class of sizes 1 to kLargeMax.
HZ_INLINE Bin bin_for_size(std::size_t size) {
  return size <= kTableMax ? classes.of((size - 1) / kMinAlign) : scan_bin(size);
}

// The smallest class whose slots all lie on multiples of `alignment` (at most one granule); kHugeBin if none.
// The first of those that are not spare: no block of that size and alignment has a larger one.
HZ_INLINE constexpr Bin most_aligned_bin(std::size_t size, std::size_t alignment) {
  if (size <= kMediumMax && alignment <= kGranule) {
    Bin bin = scan_bin(size < alignment ? alignment : size);
    while ((size_of_bin(bin) & (alignment - 1)) != 0)
      ++bin;  // ends at a power of two, at most seven steps away
    return bin;
  }
  return size <= kLargeMax && alignment <= kGranule ? scan_bin(size) : kHugeBin;
}
HZ_INLINE Bin aligned_bin(std::size_t size, std::size_t alignment) {
  if (size > kMediumMax || alignment > kGranule) return most_aligned_bin(size, alignment);
  const Bin bin = classes.of(((size < alignment ? alignment : size) - 1) / kMinAlign);
  return (bin_size(bin) & (alignment - 1)) == 0 ? bin : most_aligned_bin(size, alignment);
}

}  // namespace hz
