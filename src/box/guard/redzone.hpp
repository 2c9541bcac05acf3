// SPDX-License-Identifier: Apache-2.0
//
// The redzone behind a block: eight random bytes of the process, again and again, by address. None of them is
// zero, because a write of one byte too much often writes a zero.
// Used by: sealed.hpp for slots, of which it takes up to kMost bytes, and sealed_runs.hpp. Cost: four lanes
// of 16 bytes where the slot has room for them, one in slots of up to 128 bytes; the length is no branch.
#pragma once

#include <array>
#include <bit>

#include "base/lanes.hpp"
#include "base/plain_word.hpp"
#include "base/zeroes.hpp"
#include "os/os.hpp"

namespace hz {

class Redzone {
 public:
  static constexpr std::size_t kMost = 64;

  static void open() { pattern.set(os::random_word() | 0x0101010101010101); }

  // --- in a slot, with `room` bytes before the canary at `end`

  // Writes the redzone from `begin` on, where the block will end, into a slot that no thread has yet. Works
  // by lanes, and masks what lies before the redzone: one lane in a slot of up to 128 bytes, whose class is
  // next to no other by more than that, four in larger ones. So the processor need not predict the length.
  // Where no lane fits, it works by words.
  HZ_INLINE static void put(std::uintptr_t begin, std::uintptr_t end, std::size_t room) {
    const auto put = [](LaneAt& lane, Lane word, Lane mask) { lane.value ^= (lane.value ^ word) & mask; };
    if (is_in_one_lane(begin, end, room)) return for_lanes<1>(begin, end, put);
    if (HZ_LIKELY(room >= kMost)) return for_lanes<kMost / sizeof(Lane)>(begin, end, put);
    if (end - begin >= sizeof(Word)) {
      for_words(begin, end, [](std::uintptr_t at, std::uint64_t word) { return store(at, word), true; });
    } else if (begin != end) {
      const std::uint64_t theirs = kAll >> (end - begin) * 8;
      store(end - sizeof(Word), (load(end - sizeof(Word)) & theirs) | (pattern.get() & ~theirs));
    }
  }
  // Returns true if it is as put() left it.
  HZ_INLINE static bool is_whole(std::uintptr_t begin, std::uintptr_t end, std::size_t room) {
    Lane differs{};
    const auto look = [&differs](const LaneAt& lane, Lane word, Lane mask) {
      differs |= (lane.value ^ word) & mask;
    };
    if (is_in_one_lane(begin, end, room)) {
      for_lanes<1>(begin, end, look);
    } else if (HZ_LIKELY(room >= kMost)) {
      for_lanes<kMost / sizeof(Lane)>(begin, end, look);
    } else if (end - begin >= sizeof(Word)) {
      return for_words(begin, end, [](std::uintptr_t at, std::uint64_t word) { return load(at) == word; });
    } else {
      return begin == end || (load(end - sizeof(Word)) ^ pattern.get()) >> (8 - (end - begin)) * 8 == 0;
    }
    return (differs[0] | differs[1]) == 0;
  }

  // --- anywhere; no other byte is read, for another thread may be writing to it

  static bool is_whole(std::uintptr_t begin, std::uintptr_t end) {
    return end - begin < kMost ? has(begin, end - begin) : has_long(begin, end);
  }
  static bool has(std::uintptr_t begin, std::size_t bytes) {
    const std::uintptr_t end = begin + bytes;
    if (bytes >= sizeof(Word))
      return for_words(begin, end, [](std::uintptr_t at, std::uint64_t word) { return load(at) == word; });
    for (std::uintptr_t at = begin; at < end; ++at)
      if (byte(at) != static_cast<unsigned char>(pattern_at(at))) return false;
    return true;
  }
  static void write(std::uintptr_t begin, std::size_t bytes) {
    const std::uintptr_t end = begin + bytes;
    std::uintptr_t at = begin;
    for (const std::uint64_t word = pattern_at(at); at + sizeof(Word) <= end; at += sizeof(Word))
      store(at, word);
    for (; at < end; ++at) byte(at) = static_cast<unsigned char>(pattern_at(at));
  }

 private:
  // Where bytes are read as words, whatever the program keeps there.
  struct __attribute__((packed, may_alias)) Word {
    std::uint64_t value;
  };
  HZ_INLINE static std::uint64_t load(std::uintptr_t at) {
    return static_cast<const Word*>(pointer(at))->value;
  }
  HZ_INLINE static void store(std::uintptr_t at, std::uint64_t value) {
    static_cast<Word*>(pointer(at))->value = value;
  }
  static unsigned char& byte(std::uintptr_t at) { return *static_cast<unsigned char*>(pointer(at)); }

  HZ_INLINE static bool is_in_one_lane(std::uintptr_t begin, std::uintptr_t end, std::size_t room) {
    constexpr std::size_t kMostRoom = 128 - sizeof(Word);
    return HZ_LIKELY(room - sizeof(Lane) <= kMostRoom - sizeof(Lane)) &&
           HZ_LIKELY(end - begin <= sizeof(Lane));
  }
  // Returns what stands in a redzone from there on.
  HZ_INLINE static std::uint64_t pattern_at(std::uintptr_t at) {
    return std::rotr(pattern.get(), static_cast<int>(at % sizeof(Word) * 8));
  }
  // Returns true if the whole range holds the pattern. Requires: at least kMost bytes. Reads no other byte.
  static bool has_long(std::uintptr_t begin, std::uintptr_t end) {
    return Zeroes::is_wide() ? has_wide(begin, end) : has_lanes(begin, end);
  }
  HZ_WIDE static bool has_wide(std::uintptr_t begin, std::uintptr_t end) { return has_lanes(begin, end); }
  // Compares kMost bytes a step; the last step may repeat bytes of the one before it.
  HZ_INLINE static bool has_lanes(std::uintptr_t begin, std::uintptr_t end) {
    const std::uint64_t first = pattern_at(begin), last = pattern_at(end);
    const WideLane word = {first, first, first, first}, last_word = {last, last, last, last};
    const WideLaneAt* lane = wide_lanes_at(end - kMost);
    WideLane differs = (lane[0].value ^ last_word) | (lane[1].value ^ last_word);
    for (; begin + kMost < end; begin += kMost) {
      lane = wide_lanes_at(begin);
      differs |= (lane[0].value ^ word) | (lane[1].value ^ word);
    }
    return (differs[0] | differs[1] | differs[2] | differs[3]) == 0;
  }
  // One half masks what is before the redzone, the other one what is in it.
  static constexpr auto kMasks = [] {
    std::array<unsigned char, 2 * kMost> masks{};
    for (std::size_t i = kMost; i < masks.size(); ++i) masks[i] = 0xff;
    return masks;
  }();
  // Visits the lanes from the redzone on, or the last ones before the canary. Requires, for one lane: the
  // redzone fits into the last.
  template <std::size_t kLanes>
  HZ_INLINE static void for_lanes(std::uintptr_t begin, std::uintptr_t end, auto visit) {
    constexpr std::size_t kBytes = kLanes * sizeof(Lane);
    const std::uintptr_t at = kBytes == kMost && begin < end - kBytes ? begin : end - kBytes;
    const std::uint64_t word = kBytes == kMost ? pattern_at(at) : pattern.get();
    const unsigned char* const masks = &kMasks[kMost - (begin - at)];
    for (std::size_t i = 0; i < kBytes; i += sizeof(Lane))
      visit(*lanes_at(at + i), Lane{word, word}, lanes_at(address(masks) + i)->value);
  }
  // Word by word, the last two of which may share bytes, as long as `visit` says so.
  HZ_INLINE static bool for_words(std::uintptr_t begin, std::uintptr_t end, auto visit) {
    const std::uint64_t word = pattern_at(begin);
    for (std::uintptr_t at = begin; at + sizeof(Word) < end; at += sizeof(Word))
      if (HZ_UNLIKELY(!visit(at, word))) return false;
    return visit(end - sizeof(Word), pattern_at(end));
  }
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static_assert(kMinAlign % sizeof(Lane) == 0);

  static inline constinit OnceWord<std::uint64_t> pattern{0};
};

}  // namespace hz
