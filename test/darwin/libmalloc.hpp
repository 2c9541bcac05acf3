// SPDX-License-Identifier: Apache-2.0
//
// An imitation of macOS's libmalloc, written after what its published sources do (libmalloc-317 to 792): the
// list of zones, and who is asked for what. The zones that the system would have are of the C library's
// malloc, and know their blocks. Included by zone_test.cpp; nothing here is what macOS runs.
#pragma once

#include <malloc/malloc.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace libmalloc {

// --- a zone of the system

struct SystemZone : malloc_zone_t {
  std::mutex lock;
  std::map<const void*, size_t> blocks;

  explicit SystemZone(const char* name, malloc_introspection_t* introspection) : malloc_zone_t{} {
    zone_name = name;
    version = 10;
    introspect = introspection;
    size = [](malloc_zone_t* z, const void* at) { return of(z).bytes(at); };
    malloc = [](malloc_zone_t* z, size_t n) { return of(z).noted(::malloc(n), n); };
    calloc = [](malloc_zone_t* z, size_t count, size_t n) {
      return of(z).noted(::calloc(count, n), count * n);
    };
    free = [](malloc_zone_t* z, void* at) { ::free(of(z).forgotten(at)); };
    realloc = [](malloc_zone_t* z, void* at, size_t n) {
      return of(z).noted(::realloc(of(z).forgotten(at), n), n);
    };
  }
  static SystemZone& of(malloc_zone_t* z) { return *static_cast<SystemZone*>(z); }
  size_t bytes(const void* at) {
    const std::lock_guard hold(lock);
    const auto found = blocks.find(at);
    return found == blocks.end() ? 0 : found->second;
  }
  void* noted(void* block, size_t n) {
    const std::lock_guard hold(lock);
    blocks[block] = std::max<size_t>(n, 1);
    return block;
  }
  void* forgotten(void* block) {
    const std::lock_guard hold(lock);
    blocks.erase(block);
    return block;
  }
};

inline malloc_introspection_t& nothing_to_lock() {
  static malloc_introspection_t it = [] {
    malloc_introspection_t them = {};
    them.force_lock = them.force_unlock = them.reinit_lock = [](malloc_zone_t*) {};
    return them;
  }();
  return it;
}

// --- the list

inline std::vector<malloc_zone_t*>& zones() {
  static auto* const list = new std::vector<malloc_zone_t*>;
  return *list;
}
inline malloc_zone_t*& purgeable() {
  static malloc_zone_t* zone = nullptr;
  return zone;
}
inline SystemZone* add(const char* name) {
  auto* const zone = new SystemZone(name, &nothing_to_lock());
  zones().push_back(zone);
  return zone;
}
// As a process begins: the first is the default one.
inline void begin(std::initializer_list<const char*> names) {
  zones().clear();
  purgeable() = nullptr;
  for (const char* name : names) add(name);
}
// Before the zone's constructor looks.
struct Beginning {
  Beginning() { begin({"nano", "scalable"}); }
};

inline std::vector<std::string_view> names() {
  std::vector<std::string_view> them;
  for (const malloc_zone_t* zone : zones()) them.emplace_back(zone->zone_name);
  return them;
}

// --- what programs call

inline const void* not_allocated = nullptr;  // of which the system would have said so, and ended the process

inline malloc_zone_t* zone_of(const void* at, size_t* bytes = nullptr) {
  for (malloc_zone_t* zone : zones()) {
    const size_t n = zone->size(zone, at);
    if (bytes != nullptr) *bytes = n;
    if (n != 0) return zone;
  }
  return nullptr;
}
inline malloc_zone_t* first() { return zones()[0]; }

inline void* malloc(size_t n) { return first()->malloc(first(), n); }
inline void* calloc(size_t count, size_t n) { return first()->calloc(first(), count, n); }
inline void* valloc(size_t n) { return first()->valloc(first(), n); }
inline void free(void* at) {
  if (at == nullptr) return;
  malloc_zone_t* const zone = zone_of(at);
  if (zone == nullptr) return void(not_allocated = at);
  zone->free(zone, at);
}
inline void* realloc(void* at, size_t n) {
  if (at == nullptr) return malloc(n);
  if (n == 0) {
    void* const least = malloc(0);
    free(at);
    return least;
  }
  malloc_zone_t* const zone = zone_of(at);
  return zone == nullptr ? nullptr : zone->realloc(zone, at, n);
}
inline size_t size(const void* at) {
  size_t n = 0;
  zone_of(at, &n);
  return n;
}
inline int posix_memalign(void** out, size_t alignment, size_t n) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const block = first()->memalign(first(), alignment, n);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
inline size_t good_size(size_t n) { return first()->introspect->good_size(first(), n); }

inline pid_t fork() {
  for (malloc_zone_t* zone : zones()) zone->introspect->force_lock(zone);
  const pid_t child = ::fork();
  for (malloc_zone_t* zone : zones())
    child == 0 ? zone->introspect->reinit_lock(zone) : zone->introspect->force_unlock(zone);
  return child;
}

}  // namespace libmalloc

// --- what zones call

inline kern_return_t malloc_get_all_zones(task_t, memory_reader_t*, vm_address_t** zones, unsigned* count) {
  *zones = reinterpret_cast<vm_address_t*>(libmalloc::zones().data());
  *count = static_cast<unsigned>(libmalloc::zones().size());
  return KERN_SUCCESS;
}
inline malloc_zone_t* malloc_default_purgeable_zone() {
  if (libmalloc::purgeable() == nullptr) libmalloc::purgeable() = libmalloc::add("purgeable");
  return libmalloc::purgeable();
}
inline void malloc_zone_register(malloc_zone_t* zone) {
  auto& list = libmalloc::zones();
  if (std::find(list.begin(), list.end(), zone) == list.end()) list.push_back(zone);
}
inline void malloc_zone_unregister(malloc_zone_t* zone) {
  auto& list = libmalloc::zones();
  const auto found = std::find(list.begin(), list.end(), zone);
  if (found == list.end()) return;
  *found = list.back();
  list.pop_back();
}
