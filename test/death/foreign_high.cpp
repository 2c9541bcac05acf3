// SPDX-License-Identifier: Apache-2.0
//
// free of an address that no process has.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ForeignHigh, "E01 foreign-pointer", kFatal) {
  void* high = hz_test::Opaque(reinterpret_cast<void*>(UINTPTR_MAX - 63));
  scene.Expect(high, hz_test::Scene::kNoClass);
  api::Free(high);
}
