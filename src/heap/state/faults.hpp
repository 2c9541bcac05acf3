// SPDX-License-Identifier: Apache-2.0
//
// Faults that are found while locks are held. They are recorded, and reported after the locks are released: a
// program may handle SIGABRT, and its handler may allocate, free or fork, as with the C library's malloc.
// Called by the boundary and by all code that takes a lock around it; costs a load and a compare a slow path.
#pragma once

#include "base/bytes.hpp"
#include "box/guard/report.hpp"
#include "heap/state/state.hpp"

namespace hz {

template <class Line>
struct Faults {
  using S = State<Line>;
  using Guard = typename Line::Guard;

  // With a lock held, during the life of a Telling.
  HZ_COLD static void note(Fault fault, const void* at, Bin bin, Seen seen = Seen::kLater) {
    typename S::Local& mine = S::tls();
    if (mine.noted < S::kMostNoted) {
      mine.notes[mine.noted++] = std::uint64_t{seen == Seen::kNow} << kNowShift |
                                 std::uint64_t{static_cast<unsigned>(fault)} << kFaultShift |
                                 std::uint64_t{bin} << kBinShift | address(at);
    } else if (!FaultReport::is_fatal(fault)) {
      // And the program goes on: no handler is called.
      Guard::report(fault, at, bin, Line::kName, Seen::kWithLock);
    }
    // A fatal one that has no place stands behind one that ends the program.
  }

  // Stands before the locks of its scope, so that its end comes after theirs. A thread outside of every such
  // scope holds no lock.
  class Telling {
   public:
    Telling() { ++S::tls().inside; }
    ~Telling() {
      if (--S::tls().inside == 0 && HZ_UNLIKELY(S::tls().noted != 0)) tell();
    }
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
  };

 private:
  static constexpr unsigned kBinShift = 48, kFaultShift = 56, kNowShift = 63;
  static_assert(kHeapBin < (1U << (kFaultShift - kBinShift)));

  // The handler may come here again, or leave by a jump.
  HZ_COLD static void tell() {
    typename S::Local& mine = S::tls();
    std::uint64_t notes[S::kMostNoted];
    const unsigned count = mine.noted;
    copy_bytes(notes, mine.notes, sizeof notes);
    mine.noted = 0;
    for (unsigned i = 0; i < count; ++i) {
      const auto fault =
          static_cast<Fault>(notes[i] >> kFaultShift & ((1U << (kNowShift - kFaultShift)) - 1));
      const Seen seen = (notes[i] >> kNowShift) != 0 ? Seen::kNow : Seen::kLater;
      const Bin bin = notes[i] >> kBinShift & ((1U << (kFaultShift - kBinShift)) - 1);
      Guard::report(fault, pointer(notes[i] & ((std::uint64_t{1} << kBinShift) - 1)), bin, Line::kName, seen);
    }
  }
};

}  // namespace hz
