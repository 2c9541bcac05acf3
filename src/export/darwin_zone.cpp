// SPDX-License-Identifier: Apache-2.0
//
// macOS: a malloc zone that takes the place of the default one when the library is loaded, so that libmalloc
// serves malloc, calloc, realloc and their like, and by these operator new, from our heap. Called by
// libmalloc; an allocation costs its call through the zone, a free first asks us whose the block is.
//
// Why a zone, and not functions that dyld puts in the place of malloc's (__DATA,__interpose): what libmalloc
// calls itself, dyld does not replace, but it goes through the zones; and a free asks each zone whether the
// block is its own. Blocks that the system's zone gave before we were there go back to it, and we need not
// tell them from ours.
//
// Nothing here may have thread_local variables: a thread's first use of them would be a malloc, which is us
// (os/per_thread.hpp). test/package/macos_test.py sees that the library has none.
#include <mach/mach_init.h>
#include <malloc/malloc.h>

#include "export/c_rules.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

using hz::Fault;
using hz::ThisHeap;
using hz::ThisLibrary;

namespace hz::os {
namespace {
constinit ForkHooks hooks = {};
}
constinit ForkHooks* fork_hooks_kept = &hooks;
}  // namespace hz::os

namespace {

namespace os = hz::os;

// --- blocks

// 0: not ours, and libmalloc asks the next zone. A free slot has a size, too: so its second free comes to us,
// and is reported for what it is.
size_t size(malloc_zone_t*, const void* block) { return ThisHeap::bytes_at(block); }

void* allocate(malloc_zone_t*, size_t bytes) { return ThisHeap::malloc(bytes); }
void* allocate_zeroed(malloc_zone_t*, size_t count, size_t bytes) { return ThisHeap::calloc(count, bytes); }
void* allocate_aligned(malloc_zone_t*, size_t alignment, size_t bytes) {
  return hz::c_rules::aligned(alignment, bytes);
}
// The header of libmalloc promises zeros.
void* allocate_pages(malloc_zone_t*, size_t bytes) {
  void* block = ThisHeap::aligned(os::page_bytes(), bytes);
  return block == nullptr ? nullptr : memset(block, 0, bytes);
}
void give_back(malloc_zone_t*, void* block) { ThisHeap::free(block); }
// macOS's realloc answers a size of 0 with a block of the least size.
void* reallocate(malloc_zone_t*, void* block, size_t bytes) {
  return ThisHeap::realloc(block, bytes == 0 ? 1 : bytes);
}

// libmalloc calls these without asking whether they are there, if a program names its default zone.
unsigned allocate_some(malloc_zone_t*, size_t bytes, void** blocks, unsigned most) {
  unsigned count = 0;
  while (count < most && (blocks[count] = ThisHeap::malloc(bytes)) != nullptr) ++count;
  return count;
}
void give_back_some(malloc_zone_t*, void** blocks, unsigned count) {
  for (unsigned i = 0; i < count; ++i) ThisHeap::free(blocks[i]);
}

// --- the zone

void destroy(malloc_zone_t*) {}  // it is there as long as the process

// Bytes that went back to the system. As many as can: what is asked for may be less.
size_t relieve(malloc_zone_t*, size_t) {
  const uint64_t before = ThisLibrary::stats().bytes_purged;
  ThisHeap::trim(0);
  return ThisLibrary::stats().bytes_purged - before;
}

boolean_t may_have(malloc_zone_t*, void* at) { return ThisHeap::check(at) != Fault::kForeign ? 1 : 0; }

// Blocks are found by their address alone: there is no list of them for readers from outside.
kern_return_t enumerate(task_t, void*, unsigned, vm_address_t, memory_reader_t*, vm_range_recorder_t*) {
  return KERN_FAILURE;
}
size_t good_size(malloc_zone_t*, size_t bytes) {
  if (bytes <= hz::kLargeMax) return hz::size_of_bin(hz::scan_bin(bytes == 0 ? 1 : bytes));
  return bytes > PTRDIFF_MAX ? bytes : hz::align_up(bytes, hz::kGranule);
}
boolean_t check(malloc_zone_t*) { return 1; }
void print(malloc_zone_t*, boolean_t) { ThisLibrary::print_stats(hz::StatsFormat::kText); }
void log(malloc_zone_t*, void*) {}
boolean_t is_locked(malloc_zone_t*) { return 0; }
void count(malloc_zone_t*, malloc_statistics_t* out) {
  const hz_stats_t s = ThisLibrary::stats();
  const uint64_t allocs = s.alloc_small + s.alloc_medium + s.alloc_large;
  const uint64_t frees = s.free_small + s.free_medium + s.free_large;
  // Blocks are 0 where the heap does not count them (HZ_STATS).
  *out = {static_cast<unsigned>(allocs > frees ? allocs - frees : 0), s.bytes_live, s.bytes_peak,
          s.bytes_held + s.bytes_dirty};
}

// Around a fork libmalloc locks the zones behind dyld and what else allocates while it is locked. Handlers of
// pthread_atfork come before all of these: ours would hold the heap while we wait for a lock of dyld's,
// whose holder may wait for the heap.
void call(void (*hook)()) {
  if (hook != nullptr) hook();
}
void lock(malloc_zone_t*) { call(os::hooks.prepare); }
void unlock(malloc_zone_t*) { call(os::hooks.parent); }
void unlock_in_child(malloc_zone_t*) { call(os::hooks.child); }

// libmalloc checks for functions that are not named here. (A free by size would receive the answer of
// `size`.)
constinit malloc_introspection_t introspection = [] {
  malloc_introspection_t it = {};
  it.enumerator = &enumerate;
  it.good_size = &good_size;
  it.check = &check;
  it.print = &print;
  it.log = &log;
  it.force_lock = &lock;
  it.force_unlock = &unlock;
  it.statistics = &count;
  it.zone_locked = &is_locked;
  it.reinit_lock = &unlock_in_child;
  return it;
}();

constinit malloc_zone_t zone = [] {
  malloc_zone_t it = {};
  it.size = &size;
  it.malloc = &allocate;
  it.calloc = &allocate_zeroed;
  it.valloc = &allocate_pages;
  it.free = &give_back;
  it.realloc = &reallocate;
  it.destroy = &destroy;
  it.zone_name = "hakozuna";
  it.batch_malloc = &allocate_some;
  it.batch_free = &give_back_some;
  it.introspect = &introspection;
  it.version = 13;  // malloc and calloc set errno themselves. An older libmalloc looks at what it knows of
  it.memalign = &allocate_aligned;
  it.pressure_relief = &relieve;
  it.claimed_address = &may_have;
  return it;
}();

// --- taking over

malloc_zone_t* first_zone() {
  vm_address_t* zones = nullptr;
  unsigned zone_count = 0;
  if (malloc_get_all_zones(mach_task_self(), nullptr, &zones, &zone_count) != KERN_SUCCESS) return nullptr;
  return zone_count == 0 ? nullptr : reinterpret_cast<malloc_zone_t*>(zones[0]);
}

// The first zone is the default one. There is no call that makes it another: but a zone that is unregistered
// is replaced by the last, and one that is registered becomes the last. Others must not look meanwhile.
void take_over() {
  if (os::may_have_threads()) {
    os::Message()
        .text("hz: warning: loaded into a process that has threads: malloc stays as it was\n")
        .send();
    return;
  }
  ThisHeap::free(ThisHeap::malloc(1));  // what the heap's start asks for comes from the system's zone
  malloc_default_purgeable_zone();      // made by what is the default zone then
  malloc_zone_register(&zone);
  malloc_zone_t* const system = first_zone();
  if (system == nullptr || system == &zone) return;
  malloc_zone_unregister(system);
  malloc_zone_register(system);
  if (first_zone() != &zone)
    os::Message().text("hz: warning: the default malloc zone is still another one\n").send();
}

__attribute__((constructor)) void at_load() { take_over(); }

}  // namespace
