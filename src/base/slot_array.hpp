// SPDX-License-Identifier: Apache-2.0
//
// Free slots as an array of pointers: what moves between a thread and the shared lists where nothing is
// written into free slots. Used by the lines with magazines. The array belongs to the caller, most often to a
// bin. So slots are copied once, from their old place to their new one, and never to a stack.
#pragma once

#include "base/bytes.hpp"

namespace hz {

struct SlotArray {
  void** slots = nullptr;
  unsigned count = 0;

  static SlotArray of(void*& slot) { return {&slot, 1}; }

  // There is room.
  void push(void* slot) { slots[count++] = slot; }

  // What came last of the `left` slots at `from`, until there are `want`.
  void draw(unsigned want, void* const* from, unsigned& left) {
    const unsigned n = want - count < left ? want - count : left;
    left -= n;
    copy_bytes(slots + count, from + left, n * sizeof(void*));
    count += n;
  }

  // Moves at most `n`, those that came last, to `out`, in their order; how many.
  unsigned take(void** out, unsigned n) {
    const unsigned taken = n < count ? n : count;
    count -= taken;
    copy_bytes(out, slots + count, taken * sizeof(void*));
    return taken;
  }
};

}  // namespace hz
