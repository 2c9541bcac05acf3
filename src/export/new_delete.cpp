// SPDX-License-Identifier: Apache-2.0
//
// The 20 replaceable C++ operators. The library does not depend on the C++ runtime: what it throws and the
// handler it calls are looked for when memory is short (new_handler.hpp). Compiled with unwind tables, so
// that the exception passes through.
#include <new>

#include "export/c_rules.hpp"
#include "export/new_handler.hpp"

using hz::ThisHeap;

namespace {

constexpr std::size_t kNatural = hz::kMinAlign;

HZ_INLINE void* allocate(std::size_t size, std::size_t alignment) {
  if (alignment <= kNatural) return ThisHeap::malloc(size);
  return hz::is_power_of_two(alignment) ? ThisHeap::aligned(alignment, size) : nullptr;
}

HZ_COLD void* after_failure(std::size_t size, std::size_t alignment, bool may_throw, const void* caller) {
  const hz::Allocate again = [](std::size_t n, std::size_t a) { return allocate(n, a); };
  return may_throw ? hz::new_after_failure(again, size, alignment, caller)
                   : hz::new_after_failure_nothrow(again, size, alignment, caller);
}

HZ_SLOW void* new_slow(std::size_t size, std::size_t alignment, bool may_throw) {
  void* block = allocate(size, alignment);
  return HZ_LIKELY(block != nullptr) ? block
                                     : after_failure(size, alignment, may_throw, __builtin_return_address(0));
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
