// SPDX-License-Identifier: Apache-2.0
//
// free of blocks of the C library's own heap, small and mapped.
#include <dlfcn.h>

#include "death/bug.hpp"

namespace api = hz_test::api;

namespace {

// Under preload, dlsym finds ours in any library (src/export/dlsym.cpp), and dlvsym the C library's.
void* OfTheCLibrary(const char* name) {
#if defined(__GLIBC__)
#if defined(__x86_64__)
  const char* const first_version = "GLIBC_2.2.5";
#else
  const char* const first_version = "GLIBC_2.17";
#endif
  return dlvsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name, first_version);
#else  // musl
  return dlsym(dlopen("libc.so", RTLD_NOW | RTLD_NOLOAD), name);
#endif
}

}  // namespace

HZ_BUG(ForeignLibc, "E01 foreign-pointer", kFatal) {
  auto* const theirs = reinterpret_cast<void* (*)(std::size_t)>(OfTheCLibrary("malloc"));
  auto* const give_back = reinterpret_cast<void (*)(void*)>(OfTheCLibrary("free"));
  for (const std::size_t size : {std::size_t{100}, std::size_t{5} << 20}) {
    auto* block = static_cast<char*>(theirs(size));
    block[0] = 'b';
    scene.Expect(block, hz_test::Scene::kNoClass);
    api::Free(block);
    scene.Check(block[0] == 'b', "what is not ours is left alone");
    give_back(block);
  }
}
