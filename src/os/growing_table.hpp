// SPDX-License-Identifier: Apache-2.0
//
// A table that grows while others read it: rows never move and are never taken back. The first rows are part
// of the table itself, the others come in chunks, each as long as all before it. Used where something exists
// once per owner. A look-up costs a compare, for late rows two loads more; growing costs a system call a
// doubling.
#pragma once

#include <atomic>

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz::os {

// Zero bytes must be a good `Row`. kMost: rows from here on are never asked for.
template <class Row, unsigned kMost>
class GrowingTable {
 public:
  static constexpr unsigned kFirstRows = kMost < 64 ? kMost : 64;

  // nullptr if no thread has reached it yet.
  Row* find(unsigned row) {
    if (HZ_LIKELY(row < kFirstRows)) return &first_[row];
    // Acquire: pairs with reach(); the chunk's zeros are visible.
    Row* chunk = chunks_[chunk_of(row)].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + (row - first_row(chunk_of(row)));
  }

  // nullptr if there is no memory.
  Row* reach(unsigned row) {
    if (HZ_LIKELY(row < kFirstRows)) return &first_[row];
    const unsigned at = chunk_of(row);
    if (chunks_[at].load(std::memory_order_relaxed) == nullptr && !add(at)) return nullptr;
    return find(row);
  }

  // Beyond the table itself.
  std::size_t chunk_bytes() const {
    std::size_t bytes = 0;
    for (unsigned at = 0; at < kChunks; ++at) {
      if (chunks_[at].load(std::memory_order_relaxed) != nullptr) bytes += bytes_of(at);
    }
    return bytes;
  }

 private:
  static constexpr unsigned kChunks = kMost <= kFirstRows ? 1 : log2_floor((kMost - 1) / kFirstRows) + 1;

  static unsigned chunk_of(unsigned row) { return log2_floor(row / kFirstRows); }
  static unsigned first_row(unsigned chunk) { return kFirstRows << chunk; }
  static std::size_t bytes_of(unsigned chunk) { return align_up(first_row(chunk) * sizeof(Row), kGranule); }

  // Two threads may do it at once; then one of them frees its chunk again.
  bool add(unsigned at) {
    void* chunk = map(bytes_of(at), kGranule);
    if (chunk == nullptr) return false;
    forbid_huge_pages(chunk, bytes_of(at));
    Row* expected = nullptr;
    // Release: a thread that finds the chunk finds its zeros.
    if (!chunks_[at].compare_exchange_strong(expected, static_cast<Row*>(chunk), std::memory_order_release,
                                             std::memory_order_relaxed))
      unmap(chunk, bytes_of(at));
    return true;
  }

  Row first_[kFirstRows] = {};
  std::atomic<Row*> chunks_[kChunks] = {};
};

}  // namespace hz::os
