// SPDX-License-Identifier: Apache-2.0
//
// The 20 replaceable C++ operators. The library does not depend on the C++ runtime: what it throws and the
// handler it calls are weak references, present in every program that has a C++ runtime. Compiled with unwind
// tables, so that the exception passes through.
#include <new>

#include "export/c_rules.hpp"
#include "export/new_handler.hpp"

using hz::ThisHeap;

namespace std {
__attribute__((weak, noreturn)) void __throw_bad_alloc();
}

namespace {

constexpr std::size_t kNatural = hz::kMinAlign;

HZ_INLINE void* allocate(std::size_t size, std::size_t alignment) {
  if (alignment <= kNatural) return ThisHeap::malloc(size);
  return hz::is_power_of_two(alignment) ? ThisHeap::aligned(alignment, size) : nullptr;
}

// The loop that the standard asks for: the handler frees something, throws, or there is none.
HZ_COLD void* retry(std::size_t size, std::size_t alignment, bool may_throw) {
  while (may_throw ? hz::call_new_handler() : hz::try_new_handler()) {
    if (void* block = allocate(size, alignment)) return block;
  }
  if (!may_throw) return nullptr;
  if (std::__throw_bad_alloc != nullptr) std::__throw_bad_alloc();
  hz::os::abort_process();
}

HZ_SLOW void* new_slow(std::size_t size, std::size_t alignment, bool may_throw) {
  void* block = allocate(size, alignment);
  return HZ_LIKELY(block != nullptr) ? block : retry(size, alignment, may_throw);
}

// No frame: what is not at hand is a tail call.
HZ_INLINE void* at_hand_or_slow(std::size_t size, bool may_throw) {
  void* block = ThisHeap::at_hand(size);
  return HZ_LIKELY(block != nullptr) ? block : new_slow(size, 1, may_throw);
}
HZ_INLINE void* at_hand_or_slow(std::size_t size, std::size_t alignment, bool may_throw) {
  void* block = hz::is_power_of_two(alignment) ? ThisHeap::at_hand(size, alignment) : nullptr;
  return HZ_LIKELY(block != nullptr) ? block : new_slow(size, alignment, may_throw);
}

HZ_INLINE std::size_t number(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

#define HZ_OPERATOR __attribute__((visibility("default")))

HZ_OPERATOR void* operator new(std::size_t n) { return at_hand_or_slow(n, true); }
HZ_OPERATOR void* operator new[](std::size_t n) { return at_hand_or_slow(n, true); }
HZ_OPERATOR void* operator new(std::size_t n, std::align_val_t a) {
  return at_hand_or_slow(n, number(a), true);
}
HZ_OPERATOR void* operator new[](std::size_t n, std::align_val_t a) {
  return at_hand_or_slow(n, number(a), true);
}
HZ_OPERATOR void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return at_hand_or_slow(n, false);
}
HZ_OPERATOR void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return at_hand_or_slow(n, false);
}
HZ_OPERATOR void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return at_hand_or_slow(n, number(a), false);
}
HZ_OPERATOR void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return at_hand_or_slow(n, number(a), false);
}

HZ_OPERATOR void operator delete(void* p) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete[](void* p) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete(void* p, const std::nothrow_t&) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete[](void* p, const std::nothrow_t&) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete(void* p, std::align_val_t) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete[](void* p, std::align_val_t) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  ThisHeap::free(p);
}
HZ_OPERATOR void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  ThisHeap::free(p);
}
HZ_OPERATOR void operator delete(void* p, std::size_t n) noexcept {
  ThisHeap::free_sized(p, n, 1, ThisHeap::kExact);
}
HZ_OPERATOR void operator delete[](void* p, std::size_t n) noexcept {
  ThisHeap::free_sized(p, n, 1, ThisHeap::kExact);
}
HZ_OPERATOR void operator delete(void* p, std::size_t n, std::align_val_t a) noexcept {
  ThisHeap::free_sized(p, n, number(a), ThisHeap::kExact);
}
HZ_OPERATOR void operator delete[](void* p, std::size_t n, std::align_val_t a) noexcept {
  ThisHeap::free_sized(p, n, number(a), ThisHeap::kExact);
}
