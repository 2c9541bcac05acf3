// SPDX-License-Identifier: Apache-2.0
//
// Live blocks of a given volume, written in full, with their addresses in memory that is not the heap's and
// is touched before the first measurement. Called by the tests of memory that comes back.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "stress/scale.hpp"
#include "support/heap_api.hpp"
#include "support/rss.hpp"

namespace hz_test {

enum class Order { kAsMade, kAtRandom };  // of the frees
enum class Sizes { kSmall, kMixed, kLarge, kHuge };

inline const char* NameOf(Sizes sizes) {
  constexpr const char* kNames[] = {"small", "mixed", "large", "huge"};
  return kNames[static_cast<int>(sizes)];
}

// 16 to 256 bytes; 16 bytes to 64 KiB, as many small as large; 1 MiB; 16 MiB.
inline std::size_t OneOf(Sizes sizes, Random& random) {
  switch (sizes) {
    case Sizes::kSmall: return 16 + Below(random, 241);
    case Sizes::kMixed: return 15 + LogSize(random, 16);
    case Sizes::kLarge: return kMiB;
    case Sizes::kHuge: break;
  }
  return 16 * kMiB;
}

class Load {
 public:
  Load(std::size_t bytes, Sizes sizes, Order order = Order::kAtRandom)
      : bytes_(bytes), sizes_(sizes), order_(order) {
    constexpr std::size_t kMean[] = {100, 1000, kMiB, 16 * kMiB};  // or less
    capacity_ = bytes / kMean[static_cast<int>(sizes)] + 1000;
    void* table = mmap(nullptr, capacity_ * sizeof(void*), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED) std::abort();
    blocks_ = static_cast<void**>(table);
    std::memset(table, 0, capacity_ * sizeof(void*));
  }
  Load(Load&& other) noexcept
      : bytes_(other.bytes_),
        sizes_(other.sizes_),
        order_(other.order_),
        capacity_(other.capacity_),
        blocks_(std::exchange(other.blocks_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  Load& operator=(Load&&) = delete;
  ~Load() {
    if (blocks_ != nullptr) munmap(blocks_, capacity_ * sizeof(void*));
  }

  // `share`: of the volume, for a warm-up.
  void Make(std::uint64_t seed, std::size_t share = 1) {
    Random random(seed);
    for (std::size_t made = 0; made < bytes_ / share && count_ < capacity_;) {
      const std::size_t size = OneOf(sizes_, random);
      void* block = api::Malloc(size);
      if (block == nullptr) std::abort();
      std::memset(block, 0xA5, size);
      blocks_[count_++] = block;
      made += size;
    }
    for (std::size_t i = count_; i > 1 && order_ == Order::kAtRandom; --i)
      std::swap(blocks_[i - 1], blocks_[Below(random, i)]);
  }
  void Free() {
    for (std::size_t i = 0; i < count_; ++i) api::Free(blocks_[i]);
    count_ = 0;
  }

 private:
  const std::size_t bytes_;
  const Sizes sizes_;
  const Order order_;
  std::size_t capacity_ = 0;
  void** blocks_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace hz_test
