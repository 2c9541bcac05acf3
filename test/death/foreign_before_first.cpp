// SPDX-License-Identifier: Apache-2.0
//
// free of a foreign address by a thread that never allocated: nothing is initialised for it yet.
#include <pthread.h>

#include "death/bug.hpp"

namespace api = hz_test::api;

static char zeroed[64];

HZ_BUG(ForeignFirst, "E01 foreign-pointer", kFatal) {
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* shared) -> void* {
        static_cast<hz_test::Scene*>(shared)->Expect(zeroed, hz_test::Scene::kNoClass);
        api::Free(zeroed);
        return nullptr;
      },
      &scene);
  pthread_join(thread, nullptr);
}
