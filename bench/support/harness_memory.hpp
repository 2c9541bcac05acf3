// SPDX-License-Identifier: Apache-2.0
//
// The working memory of a lane (slots, rings, workers), outside of the measured allocator, resident before
// the timed region, and given back as a whole when the lane's run function returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "support/mapping.hpp"

namespace hz::bench {

class HarnessMemory {
 public:
  // `count` objects, all bytes zero, from a mapping of their own. The caller constructs what zero bytes do
  // not.
  template <class T>
  T* take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "nobody will call the destructor");
    for (std::optional<Mapping>& mapping : mappings_) {
      if (!mapping) return reinterpret_cast<T*>(mapping.emplace(count * sizeof(T), true).data());
    }
    std::fputs("harness memory: more mappings than expected\n", stderr);
    std::exit(3);
  }

  std::size_t resident_kib() const {
    std::size_t kib = 0;
    for (const std::optional<Mapping>& mapping : mappings_) kib += mapping ? mapping->resident_kib() : 0;
    return kib;
  }

 private:
  std::array<std::optional<Mapping>, 16> mappings_;
};

}  // namespace hz::bench
