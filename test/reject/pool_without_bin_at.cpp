// SPDX-License-Identifier: Apache-2.0
//
// A pool that cannot say what it handed out.
#include "box/pool/contract.hpp"

using namespace hz;

struct Box {
  struct Global {};
  static constexpr std::size_t kTableBytesPerGranule = 1;
  static constexpr unsigned kMostOwners = 1;
  static constexpr bool kWholePages = false, kWholeSpans = false;
  static void open(Global&, std::uintptr_t, std::uintptr_t, std::size_t);
  static Taken adopt(Global&, std::uintptr_t, Bin, unsigned, bool, unsigned, void**);
  static Taken take(Global&, Bin, unsigned, void**, unsigned, bool);
  static Carved carved(const Taken&, Bin);
  static Given give(Global&, Bin, void**, unsigned);
  static std::uintptr_t next_emptied(const Global&, std::uintptr_t);
  static std::size_t absent_bytes(const Global&, std::uintptr_t, Bin);
  static unsigned sift(Global&, Bin, void**, unsigned);
  static bool prefer_fuller(Global&, Bin, std::uintptr_t, unsigned, bool);
  static FreePages claim_pages(Global&, std::size_t, bool);
  static std::uintptr_t settle_pages(Global&, const FreePages&);
  static Bin bin_in(const Global&, std::uintptr_t);
  static SlotsOut slots_out(Global&, std::uintptr_t);
  static void note_slots_out(Global&, std::uintptr_t, OutOfSpan&);
#ifdef HZ_COMPLETE
  static Bin bin_at(const Global&, std::uintptr_t, std::uintptr_t);
#endif
};

static_assert(PoolContract<Box>);
