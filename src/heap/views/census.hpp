// SPDX-License-Identifier: Apache-2.0
//
// A census of the arena: how many spans each class has, and how many of their slots are out. Called for
// statistics that have no running count; a walk over the rows of all granules that were ever used, which a
// GiB of heap has 16,384 of. Exact while nothing moves.
#pragma once

#include "heap/process/fork.hpp"

namespace hz {

template <class Line>
struct Census {
  using S = State<Line>;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;

  // visit(class), of each span; takes no lock of theirs.
  static void spans(auto visit) {
    rows([&](Rows some) {
      for (std::size_t row = some.begin; row < some.end; ++row)
        if (const Bin bin = Pool::bin_in(S::shelves.pool, row)) visit(bin);
    });
  }
  // visit(class, slots), of each span; with the lock of each in turn. Holds the thread's lock meanwhile, some
  // rows at a time: a fork waits for that, and no child finds a span's lock held.
  static void slots_out(auto visit) {
    rows([&](Rows some) {
      const typename Threads<Line>::Entered here;
      for (std::size_t row = some.begin; row < some.end; ++row)
        if (const SlotsOut out = Pool::slots_out(S::shelves.pool, row); out.bin != 0)
          visit(out.bin, out.count);
    });
  }
  // Of the arena, whatever has become of it.
  static std::size_t reached_bytes() { return is_open() ? Source::reached_bytes(S::global.source) : 0; }

 private:
  static constexpr std::size_t kAtOnce = 1024;

  // Acquire: pairs with Start::build(); what was built is visible.
  static bool is_open() { return S::global.open.load(std::memory_order_acquire); }

  static void rows(auto visit) {
    if (!is_open()) return;
    Rows some;
    for (std::size_t from = 0;
         some = Source::rows_from(S::global.source, from, kAtOnce), some.begin != some.end; from = some.end)
      visit(some);
  }
};

}  // namespace hz
