// SPDX-License-Identifier: Apache-2.0
//
// A handler of SIGABRT that does all that it may do where the C library's malloc reports: it allocates and
// frees, and so does a child that it makes. Then it says "handled" and returns. Installed where
// HZ_TEST_HANDLER is set.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/fork.hpp"
#include "support/gnu_malloc.hpp"
#include "support/heap_api.hpp"

namespace hz_test {

// All that a program's handler of SIGABRT may do with the C library's malloc: it allocates and frees, and so
// does a child that it makes.
inline void AllocateAndFree() {
  for (std::size_t size = 1; size <= (std::size_t{8} << 20); size += size / 3 + 1) {
    void* blocks[3];
    for (void*& block : blocks) {
      block = api::Malloc(size);
      if (block == nullptr) _exit(6);
      std::memset(block, 1, std::min<std::size_t>(size, 4096));
    }
    for (void* block : blocks) api::Free(block);
  }
}

inline bool in_destructors = false;

inline void OnAbort(int) {
  AllocateAndFree();
  // musl holds a lock of its loader while it calls destructors, and waits for it in fork, whatever the heap.
  const bool forks = kForks && (kGlibc || !in_destructors);
  const bool whole = !forks || InAFork([] { return AllocateAndFree(), 0; }) == 0;
  const char* const said = whole ? "handled\n" : "broken: the child of a handler\n";
  if (write(1, said, std::strlen(said)) < 0) _exit(7);
}

inline void HandleAbortIfAsked() {
  if (std::getenv("HZ_TEST_HANDLER") == nullptr) return;
  std::atexit([] { in_destructors = true; });
  std::signal(SIGABRT, OnAbort);
}

}  // namespace hz_test
