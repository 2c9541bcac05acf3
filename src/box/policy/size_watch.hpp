// SPDX-License-Identifier: Apache-2.0
//
// Which sizes a program asks for, and how many spans their classes use: from this alone follows which spare
// class would save how much. Fed by a policy that watches, at refills and with spans, never by an operation;
// a few relaxed additions each, and a look over a class's sizes at every kSpansPerLook-th span. The same
// events in the same order give the same answers.
//
// A refill stands for all slots that it brings: of them one, which came to be missing, has the size that is
// noted. So numbers of sizes are samples, and the more of a class is turned over the better they are.
#pragma once

#include "base/size_classes.hpp"

namespace hz {

class SizeWatch {
 public:
  static constexpr std::size_t kWatchedMax = 32 * kKiB;
  static constexpr unsigned kNumbers = kWatchedMax / kMinAlign;
  // A class is looked at when it has so many spans, and at each so many more; a spare class has to save such
  // a part of them: what it costs is a span that is not full, on each processor, and a bin of each thread.
  static constexpr unsigned kLeastSpans = 32, kSpansPerLook = 8, kLeastShare = 16;

  struct Choice {
    std::size_t size = 0;   // 0: none is worth it
    std::size_t saves = 0;  // bytes, of the spans that the class was looked at with
  };

  void asked(std::size_t size, unsigned slots) {
    if (size - 1 >= kWatchedMax) return;
    const std::uint32_t before = slots_[(size - 1) / kMinAlign].fetch_add(slots, std::memory_order_relaxed);
    if (HZ_UNLIKELY(before >= kMostSlots)) halve(0, kNumbers);
  }
  // Returns true if it is time to look at the class: never at one whose doubling has no spare class.
  bool acquired(Bin bin, unsigned more = 1) {
    const std::uint32_t spans = spans_[bin].fetch_add(more, std::memory_order_relaxed) + more;
    if (spans > kMostSpans) return false;  // others returned spans before this count reached them
    if (spans > most_spans_[bin].load(std::memory_order_relaxed))
      most_spans_[bin].store(spans, std::memory_order_relaxed);
    return may_choose(bin) && spans >= kLeastSpans && spans % kSpansPerLook < more;
  }
  void retired(Bin bin) { spans_[bin].fetch_sub(1, std::memory_order_relaxed); }

  std::uint32_t slots(unsigned number) const { return slots_[number].load(std::memory_order_relaxed); }
  std::uint32_t spans(Bin bin) const { return spans_[bin].load(std::memory_order_relaxed); }
  std::uint32_t most_spans(Bin bin) const { return most_spans_[bin].load(std::memory_order_relaxed); }

  // Which size its doubling's spare class should have to save most of so many spans of the class.
  Choice choose(Bin bin, std::uint32_t spans) const {
    if (!may_choose(bin)) return {};
    const std::size_t most = size_of_bin(bin), below = size_below(bin);
    std::uint64_t all = 0, saved = 0;
    std::size_t best = 0;
    for (std::size_t size = below + kMinAlign; size <= most; size += kMinAlign) {
      all += slots(static_cast<unsigned>(size / kMinAlign - 1));
      const std::size_t less = saved_by(size, most);
      if (all * less <= saved) continue;
      saved = all * less;
      best = size;
    }
    if (all == 0 || saved * kLeastShare < all * touched(most)) return {};
    const std::uint64_t bytes = std::uint64_t{spans} * kGranule;
    return {best,
            static_cast<std::size_t>(static_cast<double>(saved) / static_cast<double>(all * touched(most)) *
                                     static_cast<double>(bytes))};
  }

  // Classes of whose sizes some may be given the spare class of their doubling.
  static constexpr bool may_choose(Bin bin) {
    return bin >= kFirstSpare && bin <= kLastFineBin && !is_spare(bin);
  }
  // The largest size for which a class would save enough, if the slots of `bin` all had it; 0: none.
  static constexpr std::size_t largest_saving(Bin bin) {
    if (!may_choose(bin)) return 0;
    const std::size_t most = size_of_bin(bin);
    std::size_t size = most;
    while (saved_by(size, most) * kLeastShare < touched(most)) size -= kMinAlign;
    return size;
  }
  HZ_INLINE static bool may_save(Bin bin, std::size_t size);

  // What was asked for lately counts more than what was long ago.
  void forget_half(Bin bin) {
    if (may_choose(bin))
      halve(static_cast<unsigned>(size_below(bin) / kMinAlign),
            static_cast<unsigned>(size_of_bin(bin) / kMinAlign));
  }

 private:
  static constexpr std::uint32_t kMostSlots = 1U << 31, kMostSpans = 1U << 31;

  void halve(unsigned begin, unsigned end) {
    for (unsigned n = begin; n < end; ++n)
      slots_[n].store(slots_[n].load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  }
  static constexpr std::size_t size_below(Bin bin) {
    return size_of_bin(is_spare(bin - 1) ? bin - 2 : bin - 1);
  }
  // 256ths of a byte for each slot of a full span: of a span's end that no slot fills, whole pages are never
  // touched.
  static constexpr std::size_t touched(std::size_t size) {
    const std::size_t slots = kGranule / size;
    return align_up(slots * size, kPage) * 256 / slots;
  }

  // For each slot of size `most` that would have one of `size`.
  static constexpr std::size_t saved_by(std::size_t size, std::size_t most) {
    return touched(size) < touched(most) ? touched(most) - touched(size) : 0;
  }

  std::atomic<std::uint32_t> slots_[kNumbers] = {};  // by (size - 1) / kMinAlign
  std::atomic<std::uint32_t> spans_[kBins] = {}, most_spans_[kBins] = {};
};

inline constexpr auto kLargestSaving = [] {
  std::array<std::uint16_t, kBins> sizes{};
  for (Bin bin = 1; bin < kBins; ++bin)
    sizes[bin] = static_cast<std::uint16_t>(SizeWatch::largest_saving(bin));
  return sizes;
}();
HZ_INLINE bool SizeWatch::may_save(Bin bin, std::size_t size) { return size <= kLargestSaving[bin]; }

}  // namespace hz
