// SPDX-License-Identifier: Apache-2.0
//
// free of a place where a slot could be, but none was ever handed out.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(NotAllocatedSlot, "E02 not-allocated", kFatal) {
  void* block = api::Malloc(3000);
  const std::size_t slot = hz_test::HasSeals() ? 3072 : api::UsableSize(block);  // with the seal
  const std::size_t at = reinterpret_cast<std::uintptr_t>(block) % 65536;
  std::size_t last = (65536 / slot - 1) * slot;
  if (last == at) last -= slot;  // secure draws any
  void* beyond = hz_test::Inside(block, static_cast<std::ptrdiff_t>(last - at));
  const bool known = hz_test::ExpectedLine() == "hakozuna" || hz_test::ProvesEveryFree();
  scene.Expect(beyond, known ? slot : hz_test::Scene::kNoClass);
  api::Free(beyond);
  hz_test::Scene::SlotsComeHome();
  api::Free(block);
}
