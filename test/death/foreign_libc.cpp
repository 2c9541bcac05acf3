// SPDX-License-Identifier: Apache-2.0
//
// free of blocks of the C library's own heap, small and mapped.
#include <dlfcn.h>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ForeignLibc, "E01 foreign-pointer", kFatal) {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (libc == nullptr) libc = dlopen("libc.so", RTLD_NOW | RTLD_NOLOAD);  // musl
  auto* const theirs = reinterpret_cast<void* (*)(std::size_t)>(dlsym(libc, "malloc"));
  auto* const give_back = reinterpret_cast<void (*)(void*)>(dlsym(libc, "free"));
  for (const std::size_t size : {std::size_t{100}, std::size_t{5} << 20}) {
    auto* block = static_cast<char*>(theirs(size));
    block[0] = 'b';
    scene.Expect(block, hz_test::Scene::kNoClass);
    api::Free(block);
    scene.Check(block[0] == 'b', "what is not ours is left alone");
    give_back(block);
  }
}
