// SPDX-License-Identifier: Apache-2.0
//
// What a heap asks of Windows that takes the place of a C runtime's: that the runtime's functions lead to
// ours, and what becomes of the blocks that the runtime handed out before. Called by export/windows_redirect
// alone: once when the library is loaded, and for blocks that are not ours.
#pragma once

#include <cstddef>

namespace hz::os {

struct Redirection {
  const char* name;  // as the module exports it, also with _o_ before it
  void* to;
  bool needed;  // a module without it is not what we take it for
};

void* loaded_module(const char* file);  // nullptr: it is not loaded; else it is never unloaded from now on
void* exported(void* module, const char* name);  // nullptr: there is no such function

// Redirects these functions of the module to ours, for every caller from now on. Returns nullptr, or the
// reason why nothing was changed, for the function `which`. Requires: no other thread is at the beginning of
// one of them meanwhile.
const char* redirect(void* module, const Redirection* list, std::size_t count, const char*& which);

// --- heaps of the system's; `heap` is what a C runtime calls its heap
bool is_heap_block(void* heap, const void* block);  // whatever the address is
std::size_t heap_block_bytes(void* heap, const void* block);
void free_heap_block(void* heap, void* block);
void* allocate_heap_block(void* heap, std::size_t bytes, bool zeroed);

}  // namespace hz::os
