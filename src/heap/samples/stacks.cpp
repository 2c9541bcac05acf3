// SPDX-License-Identifier: Apache-2.0
//
// Where our own frames end, and the program's begin: see stacks.hpp.
#include "heap/samples/stacks.hpp"

#include <atomic>

#include "base/bytes.hpp"
#include "base/compiler.hpp"
#include "base/units.hpp"
#include "os/os.hpp"

namespace hz {
namespace {

constinit std::atomic<bool> walks{false};  // stacks can be walked
constinit os::Code ours;

constexpr unsigned kOwnFrames = 12;   // of ours, at most, before the caller's
constexpr unsigned kWrapped = 3;      // of ours between the caller that is known and the program
constexpr unsigned kMostFrames = 64;  // of the program's

bool is_ours(const void* at) { return address(at) >= ours.begin && address(at) < ours.end; }

// The first frame that is the program's.
unsigned first_of_program(void* const* frames, unsigned count, const void* caller) {
  unsigned first = 0;
  while (first < count && first < kOwnFrames && frames[first] != caller) ++first;
  if (first == count || frames[first] != caller) first = 0;
  const unsigned most = first == 0 ? kOwnFrames : first + kWrapped;
  while (first < most && first + 1 < count && is_ours(frames[first])) ++first;
  return first;
}

}  // namespace

HZ_COLD bool Stacks::prepare(bool& walking) {
  if (walks.load(std::memory_order_acquire)) return true;
  ours = os::own_code();
  walking = true;
  const bool can = os::prepare_to_walk();
  walking = false;
  if (can) walks.store(true, std::memory_order_release);  // pairs with walk(), which finds `ours`
  return can;
}

unsigned Stacks::walk(void** out, unsigned room, const void* caller, bool& walking, const os::StackEnd& end) {
  void* frames[kMostFrames + kOwnFrames];
  unsigned count = 0;
  // Acquire: pairs with prepare().
  if (walks.load(std::memory_order_acquire) && !walking) {
    walking = true;
    count = os::walk_stack(frames, (room < kMostFrames ? room : kMostFrames) + kOwnFrames, end);
    walking = false;
  }
  if (count == 0) return caller == nullptr ? 0 : (out[0] = const_cast<void*>(caller), 1);
  const unsigned first = first_of_program(frames, count, caller);
  const unsigned depth = count - first < room ? count - first : room;
  copy_bytes(out, frames + first, depth * sizeof *out);
  return depth;
}

}  // namespace hz
