// SPDX-License-Identifier: Apache-2.0
//
// The workload of mstress_like, after the stress test of mimalloc (D. Leijen, 2019): threads allocate in
// bursts, keep some of it for later bursts, and pass blocks through one table that all of them share, so
// anybody may come to free what anybody has allocated. An iteration is one burst:
//   `blocks` times a block is allocated, of 1 to 8 words, one in 100 a hundred times, one in 1,000 a thousand
//   times as large, and its ends are written; then it is put into a place of the thread's own, or, one in
//   `kept_every`, into one of those that outlive the burst; every second time the block of a place drawn is
//   exchanged for what lies in a place drawn of the shared table
//   in the end all places are emptied, but those that outlive it
// What the table holds in the end is freed when the time has stopped. Run by the classic family, and by a
// unit test with an allocator that keeps books.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct MstressShape {
  explicit MstressShape(const Run& run)
      : blocks(run.number("blocks")),
        kept_every(run.number("kept_every")),
        table(run.number("table")),
        iterations(run.iterations()),
        touch(run.touch) {}

  std::uint32_t blocks;
  std::uint32_t kept_every;
  std::uint32_t table;
  std::uint64_t iterations;
  bool touch;

  std::uint32_t kept() const { return blocks / kept_every; }
  std::size_t places() const { return std::size_t{blocks} + kept(); }
};

template <class Allocator>
class Mstress {
 public:
  using Place = std::atomic<void*>;

  // `places` has shape.places() entries, all null; `table`, which all threads share, shape.table.
  Mstress(const MstressShape& shape, Xorshift64Star random, void** places, Place* table)
      : shape_(shape), random_(random), places_(places), kept_(places + shape.blocks), table_(table) {}

  void run() {
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) burst();
    caller_.release_all(kept_, shape_.kept());
  }
  // When all threads have ended: what the table holds, one of so many parts.
  void finish(unsigned part, unsigned parts) {
    for (std::uint32_t i = part; i < shape_.table; i += parts) {
      // Acquire: whoever put it there has ended; a barrier orders that already, and this says so.
      void* const block = table_[i].exchange(nullptr, std::memory_order_acquire);
      if (block != nullptr) caller_.release(block);
    }
  }
  const Tally& tally() const { return caller_.tally(); }

 private:
  void burst() {
    for (std::uint32_t i = 0; i < shape_.blocks; ++i) {
      void*& place = i % shape_.kept_every == 0 && i / shape_.kept_every < shape_.kept()
                         ? kept_[i / shape_.kept_every]
                         : places_[i];
      if (place != nullptr) caller_.release(place);
      place = make();
      if (i % 2 == 0) exchange(places_[random_.below(i + 1)]);
    }
    caller_.release_all(places_, shape_.blocks);
  }
  // Acquire and release: the block comes and goes with what was written into it.
  void exchange(void*& own) {
    if (own != nullptr) caller_.sent();
    own = table_[random_.below(shape_.table)].exchange(own, std::memory_order_acq_rel);
  }
  void* make() {
    const std::uint32_t draw = random_.below(1000);
    std::size_t size = (1 + random_.below(8)) * sizeof(std::uint64_t);
    size *= draw == 0 ? 1000 : draw <= 10 ? 100 : 1;
    void* const block = caller_.allocate(size);
    if (shape_.touch) write_ends(block, size);
    return block;
  }

  MstressShape shape_;
  Xorshift64Star random_;
  void** places_;
  void** kept_;
  Place* table_;
  Caller<Allocator> caller_;
};

}  // namespace hz::bench
