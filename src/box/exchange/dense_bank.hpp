// SPDX-License-Identifier: Apache-2.0
//
// Outbox of the fast lane: one open parcel per (owner, class), so that no grouping is needed and every parcel
// is full when it leaves. Costs state: owners * classes * 24 bytes (13 KiB for 8 owners); owners are shared
// by threads beyond that number. Deferring costs a link, a head and a count.
#pragma once

#include <type_traits>

#include "base/bytes.hpp"
#include "base/free_list.hpp"
#include "base/plain_word.hpp"
#include "box/exchange/contract.hpp"

namespace hz {

template <class Line>
struct DenseBank {
  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr std::size_t kParcelBytes = Line::kParcelBytes;
  static constexpr unsigned kParcelSlots = Line::kParcelSlots;

  struct PerThread {
    // No initialisers: compilers make a call of memset of so many (base/bytes.hpp).
    constexpr PerThread() {
      if (std::is_constant_evaluated()) {
        for (auto& owner : bank)
          for (Chain& chain : owner) chain = {};
      } else {
        clear_bytes(bank, sizeof bank);
      }
    }

    Chain bank[kOwners][kBins];
    OwnerWord<std::size_t> bytes;
    unsigned full_owner = 0;
    Bin full_bin = 0;
  };

  static constexpr auto words() {
    return layout::Words<1>{layout::Word("thread.outbox", offsetof(PerThread, bytes), sizeof(std::size_t))};
  }

  HZ_INLINE static bool admit(PerThread& t, unsigned owner, Bin bin) {
    const unsigned count = t.bank[owner][bin].count;
    if (HZ_LIKELY(count < kParcelSlots && count * bin_size(bin) < kParcelBytes)) return true;
    t.full_owner = owner;
    t.full_bin = bin;
    return false;
  }
  HZ_INLINE static void defer(PerThread& t, unsigned owner, Bin bin, void* slot) {
    t.bank[owner][bin].push(static_cast<FreeSlot*>(slot));
    t.bytes.add(bin_size(bin));
  }

  static std::size_t outbox_bytes(const PerThread& t) { return t.bytes.peek(); }

  class Drain {
   public:
    Drain(PerThread& thread, bool everything)
        : thread_(thread),
          at_(everything ? 0 : Bin{thread.full_owner} * kBins + thread.full_bin),
          end_(everything ? Bin{kOwners} * kBins : at_ + 1) {}

    bool next(Parcel<Chain>& out) {
      if (thread_.bytes.peek() == 0) return false;  // as a rule, with every chain to look at
      for (; at_ < end_; ++at_) {
        Chain& open = thread_.bank[at_ / kBins][at_ % kBins];
        if (open.count == 0) continue;
        out = {static_cast<unsigned>(at_ / kBins), at_ % kBins, open};
        open = {};
        thread_.bytes.add(-(std::size_t{out.slots.count} * bin_size(out.bin)));
        return true;
      }
      return false;
    }

   private:
    PerThread& thread_;
    std::size_t at_, end_;
  };
};

}  // namespace hz
