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

// --- what the program replaces

#define HZ_OPERATOR __attribute__((visibility("default"), weak))

}  // namespace

HZ_OPERATOR void* operator new(std::size_t n) { return at_hand_or_slow(n, true); }
HZ_OPERATOR void* operator new(std::size_t n, std::align_val_t a) {
  return at_hand_or_slow(n, static_cast<std::size_t>(a), true);
}
HZ_OPERATOR void operator delete(void* p) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void operator delete(void* p, std::align_val_t) noexcept { ThisHeap::free(p); }
HZ_OPERATOR void* operator new[](std::size_t n) { return ::operator new(n); }
HZ_OPERATOR void* operator new[](std::size_t n, std::align_val_t a) { return ::operator new(n, a); }
HZ_OPERATOR void operator delete[](void* p) noexcept { ::operator delete(p); }
HZ_OPERATOR void operator delete[](void* p, std::align_val_t a) noexcept { ::operator delete(p, a); }

// The same functions, whatever the names above are bound to.
#define HZ_OWN(name) __attribute__((alias(name), visibility("hidden")))
extern "C" {
HZ_OWN("_Znwm") __attribute__((malloc, alloc_size(1))) void* hz_own_new(std::size_t);
HZ_OWN("_Znam") __attribute__((malloc, alloc_size(1))) void* hz_own_array_new(std::size_t);
HZ_OWN("_ZnwmSt11align_val_t")
__attribute__((malloc, alloc_size(1))) void* hz_own_aligned_new(std::size_t, std::align_val_t);
HZ_OWN("_ZnamSt11align_val_t")
__attribute__((malloc, alloc_size(1))) void* hz_own_aligned_array_new(std::size_t, std::align_val_t);
HZ_OWN("_ZdlPv") void hz_own_delete(void*) noexcept;
HZ_OWN("_ZdaPv") void hz_own_array_delete(void*) noexcept;
HZ_OWN("_ZdlPvSt11align_val_t") void hz_own_aligned_delete(void*, std::align_val_t) noexcept;
HZ_OWN("_ZdaPvSt11align_val_t") void hz_own_aligned_array_delete(void*, std::align_val_t) noexcept;
}

namespace {

constinit hz::OnceWord<std::size_t> most_nothrow{0}, most_sized{0};
constexpr auto most_sized_now = [] { return most_sized.get(); };

// A compiler must not conclude that they are the same.
template <class F>
bool is_own(F* bound, F* own) {
  return hz::apart(bound) == own;
}

// Returns true if the program replaces one of the eight that the others call. Else opens their fast paths.
HZ_COLD bool is_replaced() {
  using New = void*(std::size_t);
  using AlignedNew = void*(std::size_t, std::align_val_t);
  using Delete = void(void*) noexcept;
  using AlignedDelete = void(void*, std::align_val_t) noexcept;
  const bool all_own = is_own<New>(&::operator new, &hz_own_new) &&
                       is_own<New>(&::operator new[], &hz_own_array_new) &&
                       is_own<AlignedNew>(&::operator new, &hz_own_aligned_new) &&
                       is_own<AlignedNew>(&::operator new[], &hz_own_aligned_array_new) &&
                       is_own<Delete>(&::operator delete, &hz_own_delete) &&
                       is_own<Delete>(&::operator delete[], &hz_own_array_delete) &&
                       is_own<AlignedDelete>(&::operator delete, &hz_own_aligned_delete) &&
                       is_own<AlignedDelete>(&::operator delete[], &hz_own_aligned_array_delete);
  if (!all_own) return true;
  most_nothrow.set(ThisHeap::kMostTried);
  most_sized.set(ThisHeap::kMostSized);
  return false;
}

HZ_SLOW void* nothrow_slow(std::size_t size) {
  if (HZ_LIKELY(most_nothrow.get() != 0) || !is_replaced()) return new_slow(size, 1, false);
  return hz::try_new([](std::size_t n, std::size_t) { return ::operator new(n); }, size, 1,
                     __builtin_return_address(0));
}
HZ_SLOW void* nothrow_array_slow(std::size_t size) {
  if (HZ_LIKELY(most_nothrow.get() != 0) || !is_replaced()) return new_slow(size, 1, false);
  return hz::try_new([](std::size_t n, std::size_t) { return ::operator new[](n); }, size, 1,
                     __builtin_return_address(0));
}
HZ_SLOW void* nothrow_aligned_slow(std::size_t size, std::size_t alignment) {
  if (!is_replaced()) return at_hand_or_slow(size, alignment, false);
  return hz::try_new([](std::size_t n, std::size_t a) { return ::operator new (n, std::align_val_t{a}); },
                     size, alignment, __builtin_return_address(0));
}
HZ_SLOW void* nothrow_aligned_array_slow(std::size_t size, std::size_t alignment) {
  if (!is_replaced()) return at_hand_or_slow(size, alignment, false);
  return hz::try_new([](std::size_t n, std::size_t a) { return ::operator new[](n, std::align_val_t{a}); },
                     size, alignment, __builtin_return_address(0));
}

HZ_SLOW void delete_slow(void* p, std::size_t n) {
  if (HZ_LIKELY(most_sized.get() != 0) || !is_replaced()) return ThisHeap::free_exact(p, n, 1);
  ::operator delete(p);
}
HZ_SLOW void delete_array_slow(void* p, std::size_t n) {
  if (HZ_LIKELY(most_sized.get() != 0) || !is_replaced()) return ThisHeap::free_exact(p, n, 1);
  ::operator delete[](p);
}
HZ_SLOW void delete_aligned_slow(void* p, std::size_t n, std::align_val_t a) {
  if (HZ_LIKELY(most_sized.get() != 0) || !is_replaced())
    return ThisHeap::free_exact(p, n, static_cast<std::size_t>(a));
  ::operator delete(p, a);
}
HZ_SLOW void delete_aligned_array_slow(void* p, std::size_t n, std::align_val_t a) {
  if (HZ_LIKELY(most_sized.get() != 0) || !is_replaced())
    return ThisHeap::free_exact(p, n, static_cast<std::size_t>(a));
  ::operator delete[](p, a);
}

}  // namespace

HZ_OPERATOR void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  void* block = ThisHeap::at_hand_up_to(most_nothrow.get(), n);
  return HZ_LIKELY(block != nullptr) ? block : nothrow_slow(n);
}
HZ_OPERATOR void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  void* block = ThisHeap::at_hand_up_to(most_nothrow.get(), n);
  return HZ_LIKELY(block != nullptr) ? block : nothrow_array_slow(n);
}
HZ_OPERATOR void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  const auto alignment = static_cast<std::size_t>(a);
  if (HZ_UNLIKELY(most_nothrow.get() == 0)) return nothrow_aligned_slow(n, alignment);
  return at_hand_or_slow(n, alignment, false);
}
HZ_OPERATOR void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  const auto alignment = static_cast<std::size_t>(a);
  if (HZ_UNLIKELY(most_nothrow.get() == 0)) return nothrow_aligned_array_slow(n, alignment);
  return at_hand_or_slow(n, alignment, false);
}

HZ_OPERATOR void operator delete(void* p, const std::nothrow_t&) noexcept { ::operator delete(p); }
HZ_OPERATOR void operator delete[](void* p, const std::nothrow_t&) noexcept { ::operator delete[](p); }
HZ_OPERATOR void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
  ::operator delete(p, a);
}
HZ_OPERATOR void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
  ::operator delete[](p, a);
}
HZ_OPERATOR void operator delete(void* p, std::size_t n) noexcept {
  ThisHeap::free_sized_up_to(most_sized_now, p, n, 1, [=] { delete_slow(p, n); });
}
HZ_OPERATOR void operator delete[](void* p, std::size_t n) noexcept {
  ThisHeap::free_sized_up_to(most_sized_now, p, n, 1, [=] { delete_array_slow(p, n); });
}
HZ_OPERATOR void operator delete(void* p, std::size_t n, std::align_val_t a) noexcept {
  ThisHeap::free_sized_up_to(most_sized_now, p, n, static_cast<std::size_t>(a),
                             [=] { delete_aligned_slow(p, n, a); });
}
HZ_OPERATOR void operator delete[](void* p, std::size_t n, std::align_val_t a) noexcept {
  ThisHeap::free_sized_up_to(most_sized_now, p, n, static_cast<std::size_t>(a),
                             [=] { delete_aligned_array_slow(p, n, a); });
}
