// SPDX-License-Identifier: Apache-2.0
//
// Memory that plays the part of free slots, chains made of it, and their contents. Called by tests of
// everything that moves slots about.
#pragma once

#include <cstddef>
#include <vector>

#include "base/free_list.hpp"
#include "base/slot_array.hpp"

namespace hz_test {

// Where a bundle's slots lie. A list needs no place.
template <class Bundle>
struct BufferOf {
  static Bundle empty() { return {}; }
};
template <>
struct BufferOf<hz::SlotArray> {
  static constexpr unsigned kSlots = 48;
  void* slots[kSlots];
  hz::SlotArray empty() { return {slots, 0}; }
};

// `count` slots of `bytes` bytes, a multiple of 16. By default enough for whatever a shared list writes into
// a slot; lists of smaller slots must get smaller ones, or it would not show when a list writes beyond them.
class Slots {
 public:
  explicit Slots(std::size_t count, std::size_t bytes = 64)
      : stride_(bytes / sizeof(hz::FreeSlot)), memory_(count * stride_) {}
  std::size_t count() const { return memory_.size() / stride_; }
  hz::FreeSlot* operator[](std::size_t i) { return &memory_[i * stride_]; }
  std::size_t IndexOf(const void* slot) const {
    return static_cast<std::size_t>(static_cast<const hz::FreeSlot*>(slot) - memory_.data()) / stride_;
  }
  // At most as many as a buffer holds.
  template <class Bundle>
  Bundle BundleOf(BufferOf<Bundle>& buffer, std::size_t first, std::size_t count) {
    Bundle bundle = buffer.empty();
    for (std::size_t i = first; i < first + count; ++i) bundle.push((*this)[i]);
    return bundle;
  }
  hz::Chain ChainOf(std::size_t first, std::size_t count) {
    BufferOf<hz::Chain> none;
    return BundleOf<hz::Chain>(none, first, count);
  }

 private:
  std::size_t stride_;
  std::vector<hz::FreeSlot> memory_;
};

inline std::vector<void*> Listed(const hz::SlotArray& array) {
  return std::vector<void*>(array.slots, array.slots + array.count);
}
inline std::vector<void*> Listed(const hz::Chain& chain) {
  std::vector<void*> slots;
  hz::FreeSlot* slot = chain.first;
  for (unsigned i = 0; i < chain.count; ++i) {
    slots.push_back(slot);
    if (slot != chain.last) slot = slot->next;
  }
  return slots;
}

}  // namespace hz_test
