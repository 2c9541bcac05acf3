// SPDX-License-Identifier: Apache-2.0
//
// free of a small number that was taken for a pointer.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ForeignLow, "E01 foreign-pointer", kFatal) {
  void* low = hz_test::Opaque(reinterpret_cast<void*>(0x40));
  scene.Expect(low, hz_test::Scene::kNoClass);
  api::Free(low);
}
