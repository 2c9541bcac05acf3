// SPDX-License-Identifier: Apache-2.0
//
// POSIX: walking the calling thread's stack, by its unwind tables, so that programs without frame pointers
// are understood. The unwinder does so where the program has it. Else glibc's backtrace() loads it when it is
// first called. All of them are weak, for the library needs the C library alone. Code that was compiled at
// run time has no tables. There the walk goes on by frame pointers, which the compilers of JavaScript and
// Java keep. See os.hpp for the contract; called for samples of the heap profile, and for reports. Costs 0.3
// to 1 microsecond a frame.
#include <unwind.h>

#include <atomic>
#include <type_traits>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetGR
extern "C" __attribute__((weak)) int backtrace(void** out, int room);

namespace hz::os {
namespace {

struct Unwinder {
  decltype(&_Unwind_Backtrace) walk;
  decltype(&_Unwind_GetIP) place;
  decltype(&_Unwind_GetCFA) stack;
  decltype(&_Unwind_GetGR) value;
};
constinit Unwinder loaded = {};  // by backtrace()
constinit std::atomic<bool> is_loaded{false};

bool is_whole(const Unwinder& one) {
  return one.walk != nullptr && one.place != nullptr && one.stack != nullptr && one.value != nullptr;
}
Unwinder known_unwinder() {
  if (is_loaded.load(std::memory_order_acquire)) return loaded;  // pairs with prepare_to_walk()
  return {&_Unwind_Backtrace, &_Unwind_GetIP, &_Unwind_GetCFA, &_Unwind_GetGR};
}

// By the numbers that unwind tables have for registers.
#if defined(__x86_64__)
constexpr int kFramePointer = 6;
#elif defined(__aarch64__)
constexpr int kFramePointer = 29;
#else
constexpr int kFramePointer = -1;
#endif

struct Walk {
  const Unwinder unwinder;
  void** const out;
  const unsigned room;
  const StackEnd end;
  unsigned count = 0;
  bool has_ended = false;    // at `end`, or where there is no more room
  std::uintptr_t stack = 0;  // of the last frame: its lowest address, and its frame pointer
  std::uintptr_t base = 0;

  // Returns false if the walk ends before it.
  bool note(std::uintptr_t place) {
    has_ended = count == room || place - 1 - end.code.begin < end.code.end - end.code.begin;
    if (!has_ended) out[count++] = pointer(place);
    return !has_ended;
  }
};

_Unwind_Reason_Code note_frame(_Unwind_Context* frame, void* walk) {
  Walk& w = *static_cast<Walk*>(walk);
  const std::uintptr_t stack = w.unwinder.stack(frame);
  if (w.end.at != 0 && w.count != 0 && stack > w.end.at) {  // it lay in the frame before
    w.has_ended = true;
    --w.count;
    return _URC_END_OF_STACK;
  }
  if (!w.note(w.unwinder.place(frame))) return _URC_END_OF_STACK;
  w.stack = stack;
  if constexpr (kFramePointer >= 0) w.base = w.unwinder.value(frame, kFramePointer);
  return _URC_NO_REASON;
}

// From a frame without unwind tables on: a frame pointer leads to the caller's, and to the return address.
void follow_frame_pointers(Walk& w) {
  if (kFramePointer < 0) return;
  const Code stack = thread_stack(w.out, w.count);
  if (w.stack < stack.begin) return;  // it runs on another stack, of which the end is not known
  constexpr std::uintptr_t kRecord = 2 * sizeof(void*), kLowest = 64 * kKiB;
  std::uintptr_t at = w.base, below = w.stack;
  while (at >= below && at + kRecord <= stack.end && at % sizeof(void*) == 0) {
    const auto* const record = static_cast<const std::uintptr_t*>(pointer(at));
    if (record[1] < kLowest || !w.note(record[1])) return;
    below = at + kRecord;
    at = record[0];
  }
}

}  // namespace

unsigned walk_stack(void** out, unsigned room, const StackEnd& end) {
  Walk walk = {.unwinder = known_unwinder(), .out = out, .room = room, .end = end};
  if (!is_whole(walk.unwinder)) {
    const int count = &backtrace != nullptr ? backtrace(out, static_cast<int>(room)) : 0;
    return count > 0 ? static_cast<unsigned>(count) : 0;
  }
  walk.unwinder.walk(&note_frame, &walk);
  if (walk.has_ended || walk.count == 0) return walk.count;
  // The outermost frame has no caller.
  if (out[walk.count - 1] == nullptr) return walk.count - 1;
  follow_frame_pointers(walk);
  return walk.count;
}

bool prepare_to_walk() {
  prepare_thread_stack();
  void* frames[2];
  if (walk_stack(frames, 2) == 0) return false;
  if (is_whole(known_unwinder())) return true;
  const auto find = [](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(loaded_function(name));
  };
  find(loaded.walk, "_Unwind_Backtrace");
  find(loaded.place, "_Unwind_GetIP");
  find(loaded.stack, "_Unwind_GetCFA");
  find(loaded.value, "_Unwind_GetGR");
  is_loaded.store(is_whole(loaded), std::memory_order_release);  // pairs with known_unwinder()
  return true;
}

}  // namespace hz::os
