// SPDX-License-Identifier: Apache-2.0
//
// The stack of the program that called us, without what of it is ours. Called for samples
// (heap/samples/sampling.hpp), without a lock: walking may allocate. Costs a fraction of a microsecond a
// frame, and up to 4 KiB of stack.
#pragma once

#include "os/os.hpp"

namespace hz {

struct Stacks {
  // When the loader has come to constructors, or later; again if need be. Whether stacks are whole from now
  // on; before, and else, a stack is the caller alone. `walking` is the calling thread's, and up while it
  // walks: what is allocated meanwhile is ours.
  static bool prepare(bool& walking);

  // The innermost call of the program first, at most `room`; how many. `caller`: where the program called us,
  // if that is known. The walk ends before `end`.
  static unsigned walk(void** out, unsigned room, const void* caller, bool& walking,
                       const os::StackEnd& end = {});
};

}  // namespace hz
