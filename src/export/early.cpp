// SPDX-License-Identifier: Apache-2.0
//
// Makes malloc answer while the loader is still at work. The loader writes the first contents of thread-local
// storage after it has relocated all objects, and resolvers of IFUNCs run before that: they would find a null
// pointer where the thread's state should be. So this object has its own IFUNC, whose resolver runs when the
// object itself has just been relocated. Called by the loader, once. When it then writes the first contents,
// the thread finds its state again (Threads::enlisted).
#include "export/line.hpp"

// There, and not null, in programs without a dynamic linker: they resolve IFUNCs before they have
// thread-local storage.
extern "C" __attribute__((weak)) void __libc_setup_tls();

namespace {

void nothing() {}

extern "C" __attribute__((used)) void (*hz_prepare_thread())() {
  if (__libc_setup_tls == nullptr) hz::ThisLibrary::prepare_thread();
  return &nothing;
}

extern "C" __attribute__((visibility("hidden"), ifunc("hz_prepare_thread"))) void hz_prepared();

// What the loader has to resolve.
__attribute__((used)) void (*const volatile prepared)() = &hz_prepared;

}  // namespace
