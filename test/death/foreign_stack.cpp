// SPDX-License-Identifier: Apache-2.0
//
// free of an address on the stack.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ForeignStack, "E01 foreign-pointer", kFatal) {
  alignas(64) char on_stack[128] = {};
  scene.Expect(on_stack, hz_test::Scene::kNoClass);
  api::Free(on_stack);
}
