// SPDX-License-Identifier: Apache-2.0
//
// No thread-specific value is to be had, so nobody would tell of a thread's end: such a thread caches
// nothing, what it frees returns to its span, and nobody writes into its storage when it is gone.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>

#include "life/scene.hpp"
#include "returns/patience.hpp"
#include "stress/threads.hpp"
#include "support/heap_api.hpp"

namespace hz_test {
std::atomic<bool> refuse_values{false};
std::atomic<unsigned> refused_values{0};
}  // namespace hz_test

// Before the C library's, for all who ask by that name; ours among them.
extern "C" int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  static auto* const next =
      reinterpret_cast<int (*)(pthread_key_t, const void*)>(dlsym(RTLD_NEXT, "pthread_setspecific"));
  if (!hz_test::refuse_values) return next(key, value);
  ++hz_test::refused_values;
  return ENOMEM;
}

namespace hz_test {
namespace {

void Use() {
  void* blocks[2000];
  for (unsigned turn = 0; turn < 20; ++turn) {
    for (unsigned i = 0; i < 2000; ++i) {
      blocks[i] = api::Malloc(16 + i % 50 * 40);
      Require(blocks[i] != nullptr, "there is memory");
      *static_cast<volatile char*>(blocks[i]) = 1;
    }
    for (void* block : blocks) api::Free(block);
  }
}

// Enough for a purger, which looks at all threads; and then a trim.
const Scene refused("ExitValueIsRefused", [] {
  std::vector<void*> many;
  for (int i = 0; i < 20'000; ++i) many.push_back(api::Malloc(1000));
  refuse_values = true;
  for (unsigned round = 0; round < 4; ++round) {
    Together(16, [](unsigned) { Use(); });
    SleepFor(0.25);
  }
  Require(refused_values >= 64, "each of them was refused");
  for (void* block : many) api::Free(block);
  api::Trim();
  Use();
});

TEST(ExitKey, AThreadWhoseEndNobodyWouldTellOfCachesNothing) {
  if (IsTiny()) GTEST_SKIP() << "no thread of it caches anything";
  ExpectScene("ExitValueIsRefused", 0);
}

}  // namespace
}  // namespace hz_test
