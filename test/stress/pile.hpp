// SPDX-License-Identifier: Apache-2.0
//
// Blocks until there is no more memory, without needing memory to remember them. Called by the tests of
// exhaustion and of limits.
#pragma once

#include "stress/blocks.hpp"

namespace hz_test {

// A pile of blocks that needs no memory beside them: each begins with a link to the one below.
class Pile {
 public:
  // False once the heap has no more.
  bool Grow(std::size_t size) {
    auto* node = static_cast<Node*>(api::Malloc(size + sizeof(Node)));
    if (node == nullptr) return false;
    *node = {top_, size, FreshSeed()};
    FillPattern(node + 1, size, node->seed);
    top_ = node;
    bytes_ += size;
    return true;
  }
  bool FreeAll() {
    bool sound = true;
    while (top_ != nullptr) {
      Node* below = top_->below;
      sound = sound && HasPattern(top_ + 1, top_->size, top_->seed);
      api::Free(top_);
      top_ = below;
    }
    bytes_ = 0;
    return sound;
  }
  std::size_t Bytes() const { return bytes_; }

 private:
  struct Node {
    Node* below;
    std::size_t size;
    std::uint64_t seed;
  };
  Node* top_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hz_test
