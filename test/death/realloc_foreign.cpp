// SPDX-License-Identifier: Apache-2.0
//
// realloc of an address that is not ours: NULL, and no copy of it.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ReallocForeign, "E01 foreign-pointer", kFatal) {
  alignas(64) char on_stack[128] = {};
  scene.Expect(on_stack, hz_test::Scene::kNoClass);
  scene.Check(api::Realloc(on_stack, 256) == nullptr, "realloc of a bad pointer is NULL");
}
