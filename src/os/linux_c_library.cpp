// SPDX-License-Identifier: Apache-2.0
//
// Linux: what the C library knows of its threads, and glibc and musl tell in different ways. See os.hpp for
// the contract; asked in malloc's slow path, and costs a load or two.
//
// glibc has a variable for it (since 2.32). musl does not say, but keeps its threads in a ring, whose links
// lie next to each other near the start of what pthread_self() points to. Nothing promises that, so it is
// looked for once, when the library is loaded: where one thread is, both links are its own address. If there
// are no two such words, nothing is known, as with an older glibc.
#include <pthread.h>

#include <atomic>

#include "os/os.hpp"

extern "C" __attribute__((weak)) char __libc_single_threaded;
// glibc exports them for allocators, and its headers do not have them.
extern "C" __attribute__((weak)) void _IO_list_lock();
extern "C" __attribute__((weak)) void _IO_list_unlock();
extern "C" __attribute__((weak)) void _IO_list_resetlock();

namespace hz::os {
namespace {

constexpr unsigned kWordsLookedAt = 6;         // a thread's record has far more
constinit std::atomic<unsigned> next_link{0};  // which word it is; 0: unknown

std::atomic<std::uintptr_t>* own_record() {
  return reinterpret_cast<std::atomic<std::uintptr_t>*>(pthread_self());
}
bool is_own_address(unsigned word) {
  return own_record()[word].load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(own_record());
}

// The record's first word is its own address in any case.
void look_for_ring() {
  for (unsigned word = 1; word + 1 < kWordsLookedAt; ++word)
    if (is_own_address(word) && is_own_address(word + 1))
      return next_link.store(word + 1, std::memory_order_relaxed);
}

__attribute__((constructor)) void at_load() {
  if (&__libc_single_threaded == nullptr) look_for_ring();
}

}  // namespace

bool may_have_threads() {
  if (&__libc_single_threaded != nullptr) return __libc_single_threaded == 0;
  const unsigned link = next_link.load(std::memory_order_relaxed);
  return link != 0 && !is_own_address(link);
}
bool has_one_thread() {
  if (&__libc_single_threaded != nullptr) return __libc_single_threaded != 0;
  const unsigned link = next_link.load(std::memory_order_relaxed);
  return link != 0 && is_own_address(link);
}

bool lock_streams() {
  const bool there =
      &_IO_list_lock != nullptr && &_IO_list_unlock != nullptr && &_IO_list_resetlock != nullptr;
  if (!there || !may_have_threads()) return false;
  return _IO_list_lock(), true;
}
void unlock_streams() { _IO_list_unlock(); }
void renew_streams() { _IO_list_resetlock(); }

}  // namespace hz::os
