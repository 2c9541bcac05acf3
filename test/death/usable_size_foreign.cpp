// SPDX-License-Identifier: Apache-2.0
//
// The usable size of an address that is not ours is 0.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(UsableSizeForeign, "E01 foreign-pointer", kFatal) {
  alignas(64) char on_stack[128] = {};
  scene.Expect(on_stack, hz_test::Scene::kNoClass);
  scene.Check(api::UsableSize(on_stack) == 0, "the usable size of a bad pointer is 0");
}
