// SPDX-License-Identifier: Apache-2.0
//
// free of memory that came from mmap.
#include <sys/mman.h>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ForeignMapping, "E01 foreign-pointer", kFatal) {
  void* mapped = mmap(nullptr, 65'536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  scene.Expect(mapped, hz_test::Scene::kNoClass);
  api::Free(mapped);
  *static_cast<volatile char*>(mapped) = 1;  // still mapped
  munmap(mapped, 65'536);
}
