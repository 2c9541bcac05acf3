// SPDX-License-Identifier: Apache-2.0
//
// free of a global variable.
#include "death/bug.hpp"

namespace api = hz_test::api;

alignas(64) static char initialised[128] = {1};

HZ_BUG(ForeignGlobal, "E01 foreign-pointer", kFatal) {
  scene.Expect(initialised, hz_test::Scene::kNoClass);
  api::Free(initialised);
  scene.Check(initialised[0] == 1, "what is not ours is left alone");
}
