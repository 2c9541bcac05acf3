// SPDX-License-Identifier: Apache-2.0
//
// dlopen and dlmopen without RTLD_DEEPBIND. A plugin that is loaded with that flag looks into its own
// dependencies first, so it takes malloc and free from the C library while the program takes them from us,
// and each frees blocks of the other. With HZ_DEEPBIND=keep the flag stays: the plugin then sees its own
// versions of libraries, and its malloc and free are the C library's. Also the moment at which a heap profile
// may find an interpreter that the program has loaded. Called by programs in place of the C library's dlopen;
// costs two loads more than that.
#include <dlfcn.h>

#include <atomic>

#include "export/line.hpp"
#include "os/linux_symbols.hpp"

namespace {

using Open = void* (*)(const char*, int);
using OpenInNamespace = void* (*)(Lmid_t, const char*, int);
constinit std::atomic<Open> known{nullptr};
constinit std::atomic<OpenInNamespace> known_in_namespace{nullptr};
constinit std::atomic<int> cleared{RTLD_DEEPBIND};  // flags that do not go on

// Not by dlsym: a library that wraps it may call dlopen to find the C library's.
HZ_COLD Open find_next() {
  const auto next = reinterpret_cast<Open>(hz::os::next_function("dlopen"));
  if (hz::ThisLibrary::keeps_deepbind()) cleared.store(0, std::memory_order_relaxed);
  known.store(next, std::memory_order_relaxed);
  return next;
}
HZ_INLINE Open next_dlopen() {
  const Open open = known.load(std::memory_order_relaxed);
  return HZ_LIKELY(open != nullptr) ? open : find_next();
}

HZ_COLD OpenInNamespace find_next_in_namespace() {
  next_dlopen();  // reads the knob
  const auto next = reinterpret_cast<OpenInNamespace>(hz::os::next_function("dlmopen"));
  known_in_namespace.store(next, std::memory_order_relaxed);
  return next;
}
HZ_INLINE OpenInNamespace next_dlmopen() {
  const OpenInNamespace open = known_in_namespace.load(std::memory_order_relaxed);
  return HZ_LIKELY(open != nullptr) ? open : find_next_in_namespace();
}

// While there is one thread, and nothing can be unloaded.
__attribute__((constructor)) void at_load() {
  find_next();
  find_next_in_namespace();
}

}  // namespace

// The C library looks for $ORIGIN, RUNPATH and the namespace in the object that the return address lies in.
// That must stay the caller's: the last line has to be a jump, never a call. The build sees to it in every
// configuration. A program without a dynamic linker has no next dlopen: the answer is null.
HZ_EXPORT void* dlopen(const char* file, int flags) noexcept {
  const Open next = next_dlopen();
  if (next == nullptr) return nullptr;
  hz::ThisLibrary::before_load();
  return next(file, flags & ~cleared.load(std::memory_order_relaxed));
}
// The same for the namespace of the program. Libraries of another namespace do not share our heap, and keep
// the flag.
HZ_EXPORT void* dlmopen(Lmid_t space, const char* file, int flags) noexcept {
  const OpenInNamespace next = next_dlmopen();
  if (next == nullptr) return nullptr;
  hz::ThisLibrary::before_load();
  return next(space, file, space == LM_ID_BASE ? flags & ~cleared.load(std::memory_order_relaxed) : flags);
}
