// SPDX-License-Identifier: Apache-2.0
//
// POSIX: walking the calling thread's stack, by its unwind tables, so that programs without frame pointers
// are understood. Whoever can do so is asked: glibc and macOS, whose backtrace() loads the unwinder when it
// is first called; else the unwinder itself, where the program has it. All of them are weak, for the library
// needs the C library alone. See os.hpp for the contract; called for samples of the heap profile. Costs a
// fraction of a microsecond a frame.
#include <unwind.h>

#include "os/os.hpp"

#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIP
extern "C" __attribute__((weak)) int backtrace(void** out, int room);

namespace hz::os {
namespace {

struct Walk {
  void** out;
  unsigned room, count;
};

_Unwind_Reason_Code note_frame(_Unwind_Context* frame, void* walk) {
  Walk& w = *static_cast<Walk*>(walk);
  if (w.count == w.room) return _URC_END_OF_STACK;
  w.out[w.count++] = reinterpret_cast<void*>(_Unwind_GetIP(frame));
  return _URC_NO_REASON;
}

}  // namespace

unsigned walk_stack(void** out, unsigned room) {
  if (&backtrace != nullptr) {
    const int count = backtrace(out, static_cast<int>(room));
    return count > 0 ? static_cast<unsigned>(count) : 0;
  }
  if (&_Unwind_Backtrace == nullptr) return 0;
  Walk walk = {out, room, 0};
  _Unwind_Backtrace(&note_frame, &walk);
  return walk.count;
}

bool prepare_to_walk() {
  void* frames[2];
  return walk_stack(frames, 2) != 0;
}

}  // namespace hz::os
