// SPDX-License-Identifier: Apache-2.0
//
// Functions by their names, on Windows: those that this program exports, as it is linked to do.
#pragma once

#include <windows.h>

namespace hz_test {

// nullptr if there is none.
template <class Function>
inline Function* FindFunction(const char* name) {
  return reinterpret_cast<Function*>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA(nullptr), name)));
}

// The library or program that a function's address lies in; nullptr if there is no such function.
inline void* ObjectOf(const char* function) {
  HMODULE object = nullptr;
  void* const address = reinterpret_cast<void*>(FindFunction<void()>(function));
  constexpr DWORD kByAddress =
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (address == nullptr) return nullptr;
  return GetModuleHandleExA(kByAddress, static_cast<const char*>(address), &object) == 0 ? nullptr : object;
}

}  // namespace hz_test
