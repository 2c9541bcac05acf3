// SPDX-License-Identifier: Apache-2.0
//
// An imitation of macOS's header, as far as the zone asks for it: names, types and order of a zone's
// functions are the system's, for that is what the zone's source is compiled against. Included on Linux by
// the zone's source and by libmalloc.hpp.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mach/mach_init.h"

typedef int boolean_t;
typedef int kern_return_t;
typedef uintptr_t vm_address_t;
typedef uintptr_t vm_size_t;

#define KERN_SUCCESS 0
#define KERN_FAILURE 5

struct vm_range_t {
  vm_address_t address;
  vm_size_t size;
};
struct malloc_statistics_t {
  unsigned blocks_in_use;
  size_t size_in_use;
  size_t max_size_in_use;
  size_t size_allocated;
};

typedef kern_return_t memory_reader_t(task_t, vm_address_t, vm_size_t, void**);
typedef void vm_range_recorder_t(task_t, void*, unsigned, vm_range_t*, unsigned);

struct malloc_introspection_t;

typedef struct _malloc_zone_t {
  void* reserved1;
  void* reserved2;
  size_t (*size)(_malloc_zone_t*, const void*);
  void* (*malloc)(_malloc_zone_t*, size_t);
  void* (*calloc)(_malloc_zone_t*, size_t, size_t);
  void* (*valloc)(_malloc_zone_t*, size_t);
  void (*free)(_malloc_zone_t*, void*);
  void* (*realloc)(_malloc_zone_t*, void*, size_t);
  void (*destroy)(_malloc_zone_t*);
  const char* zone_name;
  unsigned (*batch_malloc)(_malloc_zone_t*, size_t, void**, unsigned);
  void (*batch_free)(_malloc_zone_t*, void**, unsigned);
  malloc_introspection_t* introspect;
  unsigned version;
  void* (*memalign)(_malloc_zone_t*, size_t, size_t);
  void (*free_definite_size)(_malloc_zone_t*, void*, size_t);
  size_t (*pressure_relief)(_malloc_zone_t*, size_t);
  boolean_t (*claimed_address)(_malloc_zone_t*, void*);
  void (*try_free_default)(_malloc_zone_t*, void*);
} malloc_zone_t;

struct malloc_introspection_t {
  kern_return_t (*enumerator)(task_t, void*, unsigned, vm_address_t, memory_reader_t*, vm_range_recorder_t*);
  size_t (*good_size)(malloc_zone_t*, size_t);
  boolean_t (*check)(malloc_zone_t*);
  void (*print)(malloc_zone_t*, boolean_t);
  void (*log)(malloc_zone_t*, void*);
  void (*force_lock)(malloc_zone_t*);
  void (*force_unlock)(malloc_zone_t*);
  void (*statistics)(malloc_zone_t*, malloc_statistics_t*);
  boolean_t (*zone_locked)(malloc_zone_t*);
  boolean_t (*enable_discharge_checking)(malloc_zone_t*);
  void (*disable_discharge_checking)(malloc_zone_t*);
  void (*discharge)(malloc_zone_t*, void*);
  void* enumerate_discharged_pointers;
  void (*reinit_lock)(malloc_zone_t*);
};

extern "C" {
kern_return_t malloc_get_all_zones(task_t, memory_reader_t*, vm_address_t** zones, unsigned* count);
malloc_zone_t* malloc_default_purgeable_zone();
void malloc_zone_register(malloc_zone_t*);
void malloc_zone_unregister(malloc_zone_t*);
}
