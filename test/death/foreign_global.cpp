// SPDX-License-Identifier: Apache-2.0
//
// free of a global variable.
#include "death/bug.hpp"

namespace api = hz_test::api;

alignas(64) static char in_data[128] = {1};

HZ_BUG(ForeignGlobal, "E01 foreign-pointer", kFatal) {
  scene.Expect(in_data, hz_test::Scene::kNoClass);
  api::Free(in_data);
  scene.Check(in_data[0] == 1, "what is not ours is left alone");
}
