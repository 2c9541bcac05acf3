// SPDX-License-Identifier: Apache-2.0
//
// See new_handler.hpp. The one file compiled with exceptions: a handler that throws ends a nothrow new with a
// null pointer. All that this needs of a C++ runtime is referred to weakly; without a runtime there is no
// handler to call.
#include "export/new_handler.hpp"

#include <new>

__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak __cxa_call_terminate\n"
    ".weak _Unwind_Resume\n"
    ".weak _ZSt9terminatev\n");

// std::get_new_handler under its mangled name: the original may not be declared again as weak.
extern "C" __attribute__((weak)) std::new_handler _ZSt15get_new_handlerv();

namespace hz {

bool call_new_handler() {
  const std::new_handler handler = _ZSt15get_new_handlerv != nullptr ? _ZSt15get_new_handlerv() : nullptr;
  if (handler == nullptr) return false;
  handler();
  return true;
}

bool try_new_handler() noexcept {
  try {
    return call_new_handler();
  } catch (...) {
    return false;
  }
}

}  // namespace hz
