// SPDX-License-Identifier: Apache-2.0
//
// Random operations on a table of live blocks while memory is refused now and then: what the heap gives is
// sound, what it cannot give is NULL and ENOMEM, and what is there stays as it was. Uses no memory but its
// own. One walk belongs to one thread; walks of several threads pass blocks to each other.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <memory>
#include <vector>

#include "fault/calls.hpp"
#include "fault/content.hpp"
#include "fault/verdict.hpp"

namespace hz_test {

// Where walks leave blocks for each other.
class Mailbox {
 public:
  // Leaves `block` and takes what lay there.
  Block Swap(Random& random, const Block& block) {
    const std::lock_guard<std::mutex> hold(mutex_);
    Block& place = places_[Below(random, kPlaces)];
    const Block other = place;
    place = block;
    return other;
  }
  Block TakeNext() {
    for (Block& place : places_) {
      if (place.at != nullptr) return std::exchange(place, Block{});
    }
    return {};
  }

 private:
  static constexpr std::size_t kPlaces = 16;
  std::mutex mutex_;
  Block places_[kPlaces];
};

class Walk {
 public:
  static constexpr std::size_t kBlocks = 200;

  Walk(Verdict& verdict, Mailbox& mailbox, std::uint64_t seed, unsigned bits)
      : verdict_(verdict), mailbox_(mailbox), random_(seed), bits_(bits) {}

  // `pressure` is called now and then, and makes memory short or plenty.
  template <class Pressure>
  void Run(unsigned steps, Pressure pressure) {
    for (unsigned i = 0; i < steps && !verdict_.Failed(); ++i) {
      if (i % 16 == 0) pressure(random_);
      Step();
    }
  }

  void CheckAll() {
    for (const Block& block : blocks_) Expect(Sound(block), "every block is intact", block);
  }
  void FreeAll() {
    for (Block& block : blocks_) Free(block);
    for (Block block = mailbox_.TakeNext(); block.at != nullptr; block = mailbox_.TakeNext()) Free(block);
  }
  unsigned Given() const { return given_; }
  unsigned Refused() const { return refused_; }

  // Every call, by name, for tests that want them in an order of their own.
  bool Make(Block& block, std::size_t size) {
    block.size = size;
    block.seed = FreshSeed();
    return Accept(block, Ask([size] { return api::Malloc(size); }), "malloc");
  }
  bool MakeZeroed(Block& block, std::size_t size) {
    block.size = size;
    block.seed = FreshSeed();
    const Answer answer = Ask([size] { return api::Calloc(1, size); });
    if (answer.block != nullptr) Expect(LooksZero(answer.block, size), "calloc gives zeroes", block);
    return Accept(block, answer, "calloc");
  }
  bool MakeAligned(Block& block, std::size_t alignment, std::size_t size) {
    block.size = size;
    block.seed = FreshSeed();
    const bool posix = Below(random_, 2) == 0;
    const Answer answer = posix ? PosixMemalign(std::max(alignment, sizeof(void*)), size)
                                : Ask([=] { return api::AlignedAlloc(alignment, size); });
    if (answer.block != nullptr) Expect(IsAligned(answer.block, alignment), "alignment", block);
    return Accept(block, answer, posix ? "posix_memalign" : "aligned_alloc");
  }
  // A refusal leaves the block as it was.
  bool Resize(Block& block, std::size_t size) {
    const bool array = Below(random_, 2) == 0;
    const Answer answer =
        Ask([&] { return array ? api::ReallocArray(block.at, size, 1) : api::Realloc(block.at, size); });
    if (answer.block == nullptr) {
      ++refused_;
      Expect(answer.proper, "a refused realloc says ENOMEM", block);
      Expect(size > block.size, "a shrinking realloc cannot fail", block);
      return Expect(Sound(block), "a refused realloc leaves the block as it was", block) && false;
    }
    Expect(HoldsUpTo(answer.block, block, std::min(size, block.size)), "realloc keeps the content", block);
    block.size = size;
    return Accept(block, answer, "realloc");
  }
  void Free(Block& block) {
    if (block.at == nullptr) return;
    Expect(Sound(block), "a block is intact when it is freed", block);
    errno = ENOTNAM;
    api::Free(block.at);
    Expect(errno == ENOTNAM, "free keeps errno", block);
    block = {};
  }
  // A thread that allocates, if there is one to be had.
  void TryThread() {
    const TestsOwn own;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, &Walk::ShortThread, &verdict_) == 0)
      pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  }

 private:
  void Step() {
    Block& block = blocks_[Below(random_, kBlocks)];
    const std::size_t dice = Below(random_, 1000);
    if (dice < 4) return TryThread();
    if (dice < 8) {
      api::Trim();
      return;
    }
    if (block.at == nullptr) {
      MakeAny(block, dice);
    } else if (dice < 250) {
      Resize(block, Below(random_, 3) == 0 ? LogSize(random_, bits_)
                                           : block.size / 2 + Below(random_, block.size) + 1);
    } else if (dice < 350) {
      block = mailbox_.Swap(random_, block);
    } else if (dice < 500) {
      Expect(Sound(block), "a block is intact", block);
    } else {
      Free(block);
    }
  }

  void MakeAny(Block& block, std::size_t dice) {
    const std::size_t size = LogSize(random_, bits_);
    if (dice < 400) {
      Make(block, size);
    } else if (dice < 600) {
      MakeZeroed(block, size);
    } else if (dice < 800) {
      MakeAligned(block, std::size_t{1} << Below(random_, Below(random_, 8) == 0 ? 21 : 13), size);
    } else {
      block.size = size;
      block.seed = FreshSeed();
      Accept(block, New(size, dice < 900), "operator new");
    }
  }

  // A block as it came from the heap, or nothing.
  bool Accept(Block& block, const Answer& answer, const char* call) {
    block.at = answer.block;
    if (answer.block == nullptr) {
      ++refused_;
      Expect(answer.proper, call, block);
      block = {};
      return false;
    }
    ++given_;
    Expect(answer.proper, call, block);
    Expect(IsAligned(block.at, 16), "every block is aligned to 16", block);
    Expect(api::UsableSize(block.at) >= block.size, "the usable size covers the size", block);
    FillBlock(block);
    return true;
  }
  static bool Sound(const Block& block) {
    return block.at == nullptr || (Holds(block) && api::UsableSize(block.at) >= block.size);
  }
  bool Expect(bool holds, const char* claim, const Block& block) {
    return verdict_.Expect(holds, claim, block);
  }

  static void* ShortThread(void* verdict) {
    for (std::size_t size = 10; size < 100000; size *= 5) {
      const Answer answer = Ask([size] { return api::Malloc(size); });
      static_cast<Verdict*>(verdict)->Expect(answer.proper, "malloc in a short thread",
                                             {answer.block, size, 0});
      if (answer.block != nullptr) std::memset(answer.block, 0x5A, size);
      api::Free(answer.block);
    }
    return nullptr;
  }

  Verdict& verdict_;
  Mailbox& mailbox_;
  Random random_;
  const unsigned bits_;
  unsigned given_ = 0, refused_ = 0;
  Block blocks_[kBlocks];
};

// After the pressure: every size can be had again, by every call.
inline void ExpectEverySizeWorks(Verdict& verdict, unsigned bits) {
  Mailbox mailbox;
  Walk walk(verdict, mailbox, 1, bits);
  for (unsigned bit = 0; bit <= bits; ++bit) {
    const std::size_t size = (std::size_t{1} << bit) + bit;
    Block block;
    verdict.Expect(walk.Make(block, size), "malloc works again", {nullptr, size, 0});
    if (block.at != nullptr) verdict.Expect(walk.Resize(block, size * 2), "realloc works again", block);
    walk.Free(block);
    verdict.Expect(walk.MakeZeroed(block, size), "calloc works again", {nullptr, size, 0});
    walk.Free(block);
    verdict.Expect(walk.MakeAligned(block, 4096, size), "aligned_alloc works again", {nullptr, size, 0});
    walk.Free(block);
  }
}

// The pressure is gone: checks and frees all that was walked over, and asks for every size once more. How
// often the heap said no; it must have said yes often enough to have been tested.
inline unsigned EndWalks(Verdict& verdict, std::vector<std::unique_ptr<Walk>>& walks, unsigned steps,
                         unsigned bits) {
  unsigned given = 0, refused = 0;
  for (auto& walk : walks) {
    walk->CheckAll();
    walk->FreeAll();
    given += walk->Given();
    refused += walk->Refused();
  }
  ExpectEverySizeWorks(verdict, bits);
  verdict.Tell();
  EXPECT_GT(given, steps / 20) << "nothing was given: there was nothing to test";
  return refused;
}

}  // namespace hz_test
