// SPDX-License-Identifier: Apache-2.0
//
// dlopen without RTLD_DEEPBIND. A plugin that is loaded with that flag looks into its own dependencies first,
// so it takes malloc and free from the C library while the program takes them from us, and each frees blocks
// of the other. Called by programs in place of the C library's dlopen; one dlsym more than that.
#include <dlfcn.h>

#include "base/compiler.hpp"

// Weak: before glibc 2.34 dlsym lives in libdl, which is there whenever somebody calls dlopen, and which we
// must not need ourselves. A program without a dynamic linker has no next dlopen: the answer is null.
extern "C" __attribute__((weak)) void* dlsym(void* handle, const char* name) noexcept;

// The C library looks for $ORIGIN, RUNPATH and the namespace in the object that the return address lies in.
// That must stay the caller's: the last line has to be a jump, never a call. The build sees to it in every
// configuration.
HZ_EXPORT void* dlopen(const char* file, int flags) noexcept {
  using Open = void* (*)(const char*, int);
  if (dlsym == nullptr) return nullptr;
  const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  if (next == nullptr) return nullptr;
  return next(file, flags & ~RTLD_DEEPBIND);
}
