// SPDX-License-Identifier: Apache-2.0
//
// See new_handler.hpp. The one file compiled with exceptions: a handler that throws ends a nothrow new with a
// null pointer. All that this needs of a C++ runtime is referred to weakly; without a runtime there is no
// handler to call.
#include "export/new_handler.hpp"

#include <new>

#include "base/compiler.hpp"
#include "base/size_classes.hpp"
#include "os/linux_symbols.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak __cxa_call_terminate\n"
    ".weak _Unwind_Resume\n"
    ".weak _ZSt9terminatev\n");

// By their mangled names: the originals may not be declared again as weak.
extern "C" __attribute__((weak)) std::new_handler _ZSt15get_new_handlerv();
extern "C" __attribute__((weak, noreturn)) void _ZSt17__throw_bad_allocv();
extern "C" __attribute__((weak)) const char runtime_personality[] __asm__("__gxx_personality_v0");

namespace hz {
namespace {

// The runtime of the image that calls, or else the one that the loader bound us to, or else any.
template <class F>
F* of_runtime(F* bound, const char* name, const void* caller) {
  const bool anywhere = bound == nullptr;
  void* const found = os::function_near(caller, name, anywhere);
  return found != nullptr ? reinterpret_cast<F*>(found) : bound;
}

std::new_handler handler_of(const void* caller) {
  const auto get = of_runtime(&_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv", caller);
  return get == nullptr ? nullptr : get();
}

// Whether an exception that passes through our frames can be caught in them: the loader bound a runtime.
bool can_catch() { return runtime_personality != nullptr; }

[[noreturn]] HZ_COLD void report_no_runtime(std::size_t size) {
  os::Message()
      .text("hz: fatal: operator new: no memory for ")
      .decimal(size)
      .text(" bytes, and no C++ runtime that throws std::bad_alloc; process aborted\n")
      .send();
  os::abort_process();
}

// A plugin with a separate runtime inside may lack the function that throws; its operator new never lacks the
// throw. It asks us for memory, and fails as we did.
HZ_COLD void* throw_bad_alloc(std::size_t size, std::size_t alignment, const void* caller) {
  const auto thrower = of_runtime(&_ZSt17__throw_bad_allocv, "_ZSt17__throw_bad_allocv", caller);
  if (thrower != nullptr) thrower();
  if (alignment <= kMinAlign) {
    const auto plain = of_runtime<void*(std::size_t)>(nullptr, "_Znwm", caller);
    if (plain != nullptr) return plain(size);
  } else {
    using Aligned = void*(std::size_t, std::size_t);
    const auto aligned = of_runtime<Aligned>(nullptr, "_ZnwmSt11align_val_t", caller);
    if (aligned != nullptr) return aligned(size, alignment);
  }
  report_no_runtime(size);
}

// A runtime that came late catches what its handler throws in its own nothrow operator.
HZ_COLD void* nothrow_of_runtime(std::size_t size, std::size_t alignment, const void* caller) {
  if (alignment <= kMinAlign) {
    using Plain = void*(std::size_t, const std::nothrow_t&);
    const auto plain = of_runtime<Plain>(nullptr, "_ZnwmRKSt9nothrow_t", caller);
    return plain == nullptr ? nullptr : plain(size, std::nothrow_t());
  }
  using Aligned = void*(std::size_t, std::size_t, const std::nothrow_t&);
  const auto aligned = of_runtime<Aligned>(nullptr, "_ZnwmSt11align_val_tRKSt9nothrow_t", caller);
  return aligned == nullptr ? nullptr : aligned(size, alignment, std::nothrow_t());
}

}  // namespace

void* new_after_failure(Allocate allocate, std::size_t size, std::size_t alignment, const void* caller) {
  while (const std::new_handler handler = handler_of(caller)) {
    handler();
    if (void* block = allocate(size, alignment)) return block;
  }
  return throw_bad_alloc(size, alignment, caller);
}

void* new_after_failure_nothrow(Allocate allocate, std::size_t size, std::size_t alignment,
                                const void* caller) noexcept {
  if (handler_of(caller) == nullptr) return nullptr;
  if (!can_catch()) return nothrow_of_runtime(size, alignment, caller);
  try {
    while (const std::new_handler handler = handler_of(caller)) {
      handler();
      if (void* block = allocate(size, alignment)) return block;
    }
  } catch (...) {
  }
  return nullptr;
}

void* try_new(Allocate allocate, std::size_t size, std::size_t alignment, const void* caller) noexcept {
  if (!can_catch()) return nothrow_of_runtime(size, alignment, caller);
  try {
    return allocate(size, alignment);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace hz
