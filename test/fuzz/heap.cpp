// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: a trace of calls of the direct API, on up to three threads that hand blocks to each other,
// against an oracle that knows what each block must hold, how much of it there is and where it may lie. Sizes
// that cannot be must be refused.
//
//   the first byte   how many threads; each has its part of the rest
//   a step           a byte for the call and the block, then what the call needs
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "input.hpp"
#include "support/pattern.hpp"

namespace hz_test::fuzz {
namespace {

constexpr std::size_t kMost = 8U << 20, kHead = 4096;
constexpr unsigned kBlocks = 16, kMostSteps = 2000;
constexpr unsigned kMostTrims = 16;  // each looks at all addresses ever used: here terabytes

struct Block {
  unsigned char* at = nullptr;
  std::size_t size = 0, usable = 0, alignment = 0;
  std::uint64_t id = 0;
  bool exact = false;  // a sized free may name its size
};

std::atomic<std::uint64_t> next_id{1};
// On their way from one thread to any: in the memory of whoever took them last.
std::array<std::atomic<Block*>, 4> mail;

// Its last byte is written apart. A block of no bytes may have none.
std::size_t filled(const Block& block) { return std::min(block.usable - (block.usable != 0), kHead); }

void write(Block& block) {
  block.id = next_id.fetch_add(1, std::memory_order_relaxed);
  FillPattern(block.at, filled(block), block.id);
  if (block.usable != 0) block.at[block.usable - 1] = static_cast<unsigned char>(block.id);
}
void check(const Block& block) {
  expect(HasPattern(block.at, filled(block), block.id), "a block does not hold what was written");
  expect(block.usable == 0 || block.at[block.usable - 1] == static_cast<unsigned char>(block.id),
         "the end of a block was written to");
  expect(hz_usable_size(block.at) == block.usable, "the usable size of a block changed");
  expect(hz_owns(block.at) == 1, "a live block is not owned");
}

class Worker {
 public:
  explicit Worker(Input input) : input_(input) {}

  void run() {
    for (unsigned i = 0; i < kMostSteps && !input_.empty(); ++i) step();
    for (Block& block : blocks_) free(block);
    if (heap_ != nullptr) hz_heap_destroy(heap_);
  }

 private:
  // Small ones mostly; of any magnitude; and those that are refused.
  std::size_t size() {
    const unsigned kind = input_.byte();
    if (kind < 200) return input_.byte() * std::size_t{kind % 16 + 1};
    if (kind < 248) return (input_.number(2) << (kind % 8)) & (kMost - 1);
    return std::size_t{0} - input_.number(kind % 8 + 1 > 7 ? 8 : kind % 8 + 1);
  }
  static bool is_refused(std::size_t size) { return size > PTRDIFF_MAX; }
  static bool may_be_had(std::size_t size) { return size <= kMost; }

  void took(Block& block, void* at, std::size_t size, std::size_t alignment, bool exact) {
    expect(at != nullptr || !may_be_had(size), "there is memory");
    expect(at == nullptr || !is_refused(size), "a size that cannot be was served");
    if (at == nullptr) return;
    block = {static_cast<unsigned char*>(at), size, hz_usable_size(at), alignment, 0, exact};
    expect(reinterpret_cast<std::uintptr_t>(at) % (alignment > 16 ? alignment : 16) == 0,
           "a block lies wrong");
    expect(block.usable >= size, "a block is smaller than it was asked to be");
    // What is too large to be filled is let go at once.
    if (!may_be_had(size)) return hz_free(at), void(block = {});
    write(block);
  }
  void free(Block& block) {
    if (block.at == nullptr) return;
    check(block);
    const unsigned how = input_.byte() % 3;
    if (how == 0 || !block.exact) {
      hz_free(block.at);
    } else if (block.alignment != 0) {
      hz_free_aligned_sized(block.at, block.alignment, block.size);
    } else {
      hz_free_sized(block.at, block.size);
    }
    block = {};
  }

  void step() {
    const unsigned what = input_.byte();
    Block& block = blocks_[what % kBlocks];
    switch (what / kBlocks) {
      case 0:
      case 1:
      case 2: return allocate(block);
      case 3:
      case 4: return allocate_zeroed(block);
      case 5:
      case 6: return allocate_aligned(block);
      case 7:
      case 8: return reallocate(block);
      case 9: return exchange(block);
      case 10: return in_heap();
      case 11:
        if (block.at != nullptr) check(block);
        return;
      case 12: expand(block); return;
      case 13: return what % kBlocks == 0 ? trim() : free(block);
      default: return free(block);
    }
  }

  void trim() {
    const std::size_t pad = input_.byte() * std::size_t{4096};
    if (trims_ == kMostTrims) return;
    ++trims_;
    hz_trim(pad);
  }
  void allocate(Block& block) {
    free(block);
    const std::size_t n = size();
    if (may_be_had(n)) expect(hz_good_size(n) >= n, "a good size is too small");
    took(block, hz_malloc(n), n, 0, true);
  }
  void allocate_zeroed(Block& block) {
    free(block);
    const std::size_t n = size(), count = input_.byte();
    std::size_t all = 0;
    const bool overflows = __builtin_mul_overflow(n, count, &all);
    if (!overflows && !may_be_had(all) && !is_refused(all)) return;
    void* const at = hz_calloc(count, n);
    expect(!overflows || at == nullptr, "a product that overflows was served");
    if (overflows) return;
    if (at != nullptr && may_be_had(all)) expect(IsZero(at, all), "calloc's block is not zero");
    took(block, at, all, 0, true);
  }
  void allocate_aligned(Block& block) {
    free(block);
    const unsigned shift = input_.byte() % 24;
    const std::size_t n = size(), alignment = (std::size_t{1} << shift) + (input_.byte() == 255 ? 1 : 0);
    if (!may_be_had(n) && !is_refused(n)) return;
    void* const at = hz_aligned_alloc(alignment, n);
    if ((alignment & (alignment - 1)) != 0)
      return expect(at == nullptr, "an alignment that is none was served");
    took(block, at, n, alignment, true);
  }
  void reallocate(Block& block) {
    const std::size_t n = size(), before = block.at == nullptr ? 0 : block.size;
    if (n == 0) return free(block);
    if (block.at == nullptr) return allocate(block);
    check(block);
    const Block old = block;
    void* const at = hz_realloc(block.at, n);
    if (at == nullptr) {
      expect(!may_be_had(n), "there is memory");
      return check(block);
    }
    expect(!is_refused(n), "a size that cannot be was served");
    const std::size_t kept = std::min({before, n, filled(old)});
    expect(HasPattern(at, kept & ~std::size_t{7}, old.id), "realloc lost what the block held");
    block = {};
    took(block, at, n, 0, false);
  }
  void expand(Block& block) {
    if (block.at == nullptr) return;
    check(block);
    const std::size_t n = size();
    if (hz_expand(block.at, n) == nullptr) return check(block);
    block.usable = hz_usable_size(block.at);
    expect(block.usable >= n, "a block that was expanded is too small");
    block.size = block.usable < block.size ? block.usable : block.size;
    block.exact = false;
    write(block);
  }
  // One's own against what lies there.
  void exchange(Block& block) {
    auto* const mine = block.at == nullptr ? nullptr : new Block(block);
    block = {};
    Block* const other = mail[input_.byte() % mail.size()].exchange(mine, std::memory_order_acq_rel);
    if (other == nullptr) return;
    block = *other;
    delete other;
    check(block);
  }
  // Of a heap of its own: some blocks, which end with it.
  void in_heap() {
    if (heap_ == nullptr) heap_ = hz_heap_new();
    if (heap_ == nullptr) return;
    const std::size_t n = size();
    if (!may_be_had(n))
      return expect(!is_refused(n) || hz_heap_malloc(heap_, n) == nullptr,
                    "a size that cannot be was served");
    auto* const at = static_cast<unsigned char*>(hz_heap_malloc(heap_, n));
    expect(at != nullptr && hz_usable_size(at) >= n, "there is memory in a heap");
    if (n != 0) at[0] = at[n - 1] = 7;
    if (input_.byte() % 2 != 0) hz_free(at);
    if (input_.byte() % 8 == 0) hz_heap_destroy(std::exchange(heap_, nullptr));
  }

  Input input_;
  std::array<Block, kBlocks> blocks_{};
  hz_heap_t* heap_ = nullptr;
  unsigned trims_ = 0;
};

}  // namespace
}  // namespace hz_test::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hz_test::fuzz;
  Input input(data, size);
  const unsigned threads = input.byte() % 3 + 1;
  const std::size_t each = input.left() / threads;
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back([part = input.part(each)] { Worker(part).run(); });
  Worker(input).run();
  for (std::thread& thread : others) thread.join();
  for (auto& place : mail) {
    Block* const block = place.exchange(nullptr);
    if (block == nullptr) continue;
    check(*block);
    hz_free(block->at);
    delete block;
  }
  return 0;
}
