// SPDX-License-Identifier: Apache-2.0
//
// Linux: system calls for a thread of ours, and a memory barrier on all threads of the process. See os.hpp
// for the contract; called by the purger and by threads that revoke caches of others.
#include <linux/membarrier.h>
#include <pthread.h>

#include <atomic>

#include "base/compiler.hpp"
#include "base/units.hpp"
#include "os/calls.hpp"
#include "os/linux_symbols.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

// The loader has it; glibc's, and not every C library's.
extern "C" __attribute__((weak)) void* __libc_stack_end;
// Before glibc 2.34 they live in libpthread, which we must not need.
extern "C" __attribute__((weak)) decltype(pthread_getattr_np) pthread_getattr_np;
extern "C" __attribute__((weak)) decltype(pthread_attr_getstack) pthread_attr_getstack;

namespace hz::os {
namespace {

constinit std::atomic<bool> has_barrier{false};

// The system keeps at least as much below its end free of other mappings.
constexpr std::size_t kFirstStack = 64 * kMiB;

// pthread_getattr_np, as the program finds it.
constinit Code asks_for_stack = {};

bool is_asking(void* const* callers, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (address(callers[i]) - asks_for_stack.begin < asks_for_stack.end - asks_for_stack.begin) return true;
  return false;
}

Code stack_of_thread() {
  if (thread_id() == process_id()) {
    if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr) return {};
    const std::uintptr_t end = address(__libc_stack_end);
    return {end - kFirstStack, end};
  }
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np == nullptr || pthread_attr_getstack == nullptr ||
      pthread_getattr_np(pthread_self(), &attributes) != 0)
    return {};
  const bool is_known = pthread_attr_getstack(&attributes, &begin, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  return is_known ? Code{address(begin), address(begin) + bytes} : Code{};
}

}  // namespace

void prepare_thread_stack() {
  constexpr const char* kName = "pthread_getattr_np";
  Symbol found;
  if (symbols_of_one_image(&kName, &found, 1)) asks_for_stack = {found.at, found.at + found.bytes};
}

Code thread_stack(void* const* callers, unsigned count) {
  return is_asking(callers, count) ? Code{} : stack_of_thread();
}

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
