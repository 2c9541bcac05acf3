// SPDX-License-Identifier: Apache-2.0
//
// The oracle's map of all live blocks: tells if a new block overlaps one that is live, whichever thread made
// it. Cut into regions, each under a mutex of its own; allocates from the C library, never from the heap
// under test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hz_test {

class LiveMap {
 public:
  // False if a live block is in the way.
  bool Insert(const void* at, std::size_t bytes) {
    bool free = true;
    ForEachPiece(at, bytes, [&free](Shard& shard, std::uintptr_t begin, std::uintptr_t end) {
      const auto above = shard.live.lower_bound(begin);
      if (above != shard.live.end() && above->first < end) free = false;
      if (above != shard.live.begin() && std::prev(above)->second > begin) free = false;
      shard.live[begin] = end;
    });
    return free;
  }

  // False if it was not there as it was inserted.
  bool Erase(const void* at, std::size_t bytes) {
    bool known = true;
    ForEachPiece(at, bytes, [&known](Shard& shard, std::uintptr_t begin, std::uintptr_t end) {
      const auto found = shard.live.find(begin);
      if (found == shard.live.end() || found->second != end) {
        known = false;
      } else {
        shard.live.erase(found);
      }
    });
    return known;
  }

  bool Empty() {
    return std::all_of(std::begin(shards_), std::end(shards_), [](Shard& shard) {
      const std::lock_guard<std::mutex> hold(shard.mutex);
      return shard.live.empty();
    });
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::map<std::uintptr_t, std::uintptr_t> live;  // begin -> end, all within regions of this shard
  };
  static constexpr std::uintptr_t kRegion = std::uintptr_t{1} << 20;
  static constexpr std::size_t kShards = 64;

  template <class Visit>
  void ForEachPiece(const void* at, std::size_t bytes, Visit visit) {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    const std::uintptr_t last = first + bytes;
    for (std::uintptr_t begin = first; begin < last;) {
      const std::uintptr_t end = std::min(last, (begin / kRegion + 1) * kRegion);
      Shard& shard = shards_[begin / kRegion % kShards];
      const std::lock_guard<std::mutex> hold(shard.mutex);
      visit(shard, begin, end);
      begin = end;
    }
  }

  Shard shards_[kShards];
};

}  // namespace hz_test
