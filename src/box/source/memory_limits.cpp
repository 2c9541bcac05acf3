// SPDX-License-Identifier: Apache-2.0
//
// How limits in bytes follow from what was asked for and from what there is: see memory_limits.hpp. Called
// when the heap opens, and when a limit is set later, with the source's lock.
#include "box/source/memory_limits.hpp"

namespace hz {
namespace {

std::size_t bytes_of(const MemoryLimit& limit, std::size_t memory) {
  if (limit.percent == 0) return limit.bytes == 0 ? MemoryLimits::kNone : limit.bytes;
  return memory == 0 ? MemoryLimits::kNone : memory / 100 * limit.percent;
}
std::size_t default_soft(const os::Container& container) {
  std::size_t memory = container.memory;
  if (container.memory_high != 0 && (memory == 0 || container.memory_high < memory))
    memory = container.memory_high;
  return memory == 0 ? MemoryLimits::kNone : memory / 100 * MemoryLimits::kDefaultSoftPercent;
}
std::size_t cpus_of(const os::Container& container) {
  const unsigned usable = os::usable_cpus();
  return container.cpus != 0 && (usable == 0 || container.cpus < usable) ? container.cpus : usable;
}

}  // namespace

void MemoryLimits::set(MemoryLimit soft_limit, MemoryLimit hard_limit) {
  if (soft_limit.given) asked_soft = soft_limit;
  if (hard_limit.given) asked_hard = hard_limit;
  known ? apply() : compute(os::container(""), os::memory_bytes());
}

void MemoryLimits::compute(const os::Container& container, std::size_t physical) {
  memory = container.memory != 0 ? container.memory : physical;
  usual_soft = default_soft(container);
  known = true;
  apply();
  if (container.memory != 0) {
    const std::size_t cpus = cpus_of(container);
    const std::size_t share = container.memory / kThreadShare / (cpus == 0 ? 1 : cpus);
    thread_share.store(share > kLeastThreadShare ? share : kLeastThreadShare, std::memory_order_relaxed);
  }
}

void MemoryLimits::apply() {
  hard = bytes_of(asked_hard, memory);
  soft = asked_soft.given ? bytes_of(asked_soft, memory) : usual_soft;
  if (soft > hard) soft = hard;
  lowest = took_back = 0;
}

}  // namespace hz
