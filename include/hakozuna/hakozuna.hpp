// SPDX-License-Identifier: Apache-2.0
//
// C++ on top of the direct API: a polymorphic memory resource, a standard allocator, and first-class heaps.
// All throw std::bad_alloc on exhaustion, and any thread may use them; the first two are stateless.
// Works with and without RTTI.
#ifndef HAKOZUNA_HAKOZUNA_HPP
#define HAKOZUNA_HAKOZUNA_HPP

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>

#include "hakozuna/hakozuna.h"

namespace hakozuna {

namespace detail {
inline constexpr std::size_t kNaturalAlignment = 16;

inline void* allocate(std::size_t bytes, std::size_t alignment) {
  void* p = alignment <= kNaturalAlignment ? hz_malloc(bytes) : hz_aligned_alloc(alignment, bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

inline void deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= kNaturalAlignment) {
    hz_free_sized(p, bytes);
  } else {
    hz_free_aligned_sized(p, alignment, bytes);
  }
}
}  // namespace detail

// The one resource of the process; see resource().
class memory_resource final : public std::pmr::memory_resource {
 public:
  static std::pmr::memory_resource* instance() noexcept {
    // Never destroyed, so containers in static storage may outlive main.
    alignas(memory_resource) static unsigned char storage[sizeof(memory_resource)];
    static auto* const the_one = ::new (static_cast<void*>(storage)) memory_resource;
    return the_one;
  }

 private:
  memory_resource() = default;
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::allocate(bytes, alignment);
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    detail::deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

// std::pmr::vector<int> v(hakozuna::resource());
inline std::pmr::memory_resource* resource() noexcept { return memory_resource::instance(); }

// A first-class heap, which ends with this object and takes all of its blocks along: containers that use it
// need not be destroyed, and must not be used or destroyed later.
//
//   hakozuna::heap request;
//   std::pmr::vector<std::pmr::string> words(&request);
class heap final : public std::pmr::memory_resource {
 public:
  heap() : handle_(hz_heap_new()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  ~heap() override { hz_heap_destroy(handle_); }
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;

  // For the functions hz_heap_...; it must not be ended by them.
  hz_heap_t* handle() const noexcept { return handle_; }

  // What it holds now. Takes time that grows with all heaps of the process.
  hz_heap_stats_t stats() const noexcept {
    hz_heap_stats_t now = {};
    hz_heap_stats(handle_, &now, sizeof now);
    return now;
  }

  // Ends every block in it; the heap is empty then. If none can be had, the one that was stays as it is.
  void clear() {
    hz_heap_t* const fresh = hz_heap_new();
    if (fresh == nullptr) throw std::bad_alloc();
    hz_heap_destroy(handle_);
    handle_ = fresh;
  }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* p = alignment <= detail::kNaturalAlignment ? hz_heap_malloc(handle_, bytes)
                                                     : hz_heap_aligned_alloc(handle_, alignment, bytes);
    if (p == nullptr) throw std::bad_alloc();
    return p;
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    detail::deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  hz_heap_t* handle_;
};

// std::vector<int, hakozuna::allocator<int>> v;
template <class T>
struct allocator {
  using value_type = T;

  allocator() noexcept = default;
  template <class U>
  allocator(const allocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): the standard asks for it

  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::allocate(n * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t n) noexcept { detail::deallocate(p, n * sizeof(T), alignof(T)); }

  friend bool operator==(const allocator&, const allocator&) noexcept { return true; }
};

}  // namespace hakozuna
#endif
