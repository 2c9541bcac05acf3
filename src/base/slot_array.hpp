// SPDX-License-Identifier: Apache-2.0
//
// Free slots as an array of pointers: what moves between a thread and the shared lists where nothing is written into
// free slots. Used by the lines with magazines. Costs eight bytes a slot and a copy each time it moves.
#pragma once

namespace hz {

struct SlotArray {
  static constexpr unsigned kMost = 256;

  unsigned count = 0;
  void* slots[kMost];

  SlotArray() {}  // NOLINT(modernize-use-equals-default): else `{}` would write all of it
  // What is in it, and not the kilobytes that could be.
  SlotArray(const SlotArray& other) { copy(other); }
  SlotArray& operator=(const SlotArray& other) {
    if (this != &other) copy(other);
    return *this;
  }

  // count < kMost
  void push(void* slot) { slots[count++] = slot; }

  // What came last of the `left` slots at `from`, until there are `want`; at most kMost.
  void draw(unsigned want, void* const* from, unsigned& left) {
    const unsigned n = want - count < left ? want - count : left;
    left -= n;
    __builtin_memcpy(slots + count, from + left, n * sizeof(void*));
    count += n;
  }

  // Moves at most `n`, those that came last, to `out`, in their order; how many.
  unsigned take(void** out, unsigned n) {
    const unsigned taken = n < count ? n : count;
    count -= taken;
    __builtin_memcpy(out, slots + count, taken * sizeof(void*));
    return taken;
  }

 private:
  void copy(const SlotArray& other) {
    count = other.count;
    __builtin_memcpy(slots, other.slots, count * sizeof(void*));
  }
};

}  // namespace hz
