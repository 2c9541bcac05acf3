// SPDX-License-Identifier: Apache-2.0
//
// Linux: what a thread of our own needs of the system, and a memory barrier on all threads of the process.
// See os.hpp for the contract; called by the purger and by whoever takes back what other threads cache.
#include <linux/membarrier.h>

#include <atomic>

#include "base/compiler.hpp"
#include "os/calls.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {
namespace {

constinit std::atomic<bool> has_barrier{false};

}  // namespace

void prepare_barrier() {
  if constexpr (kThreadSanitizer) return;  // it does not know this kind of order
  const bool has = call::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  has_barrier.store(has, std::memory_order_relaxed);
}

bool barrier_on_all_threads() {
  if (!has_barrier.load(std::memory_order_relaxed)) return false;
  return call::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void wait_at_most(const std::uint32_t* word, std::uint32_t while_value, unsigned milliseconds) {
  const timespec timeout = {milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1000000};
  call::futex(word, FUTEX_WAIT_PRIVATE, while_value, &timeout);
}

}  // namespace hz::os
