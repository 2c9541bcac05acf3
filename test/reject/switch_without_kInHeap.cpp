// SPDX-License-Identifier: Apache-2.0
//
// A slow path that forgets a kind of block.
#include "heap/state/block.hpp"
#include "line/hakozuna.hpp"

#pragma GCC diagnostic error "-Wswitch"

bool has_a_lock_of_its_own(const void* at) {
  switch (hz::classify<hz::Hakozuna>(at).kind) {
    case hz::Kind::kNothing:
    case hz::Kind::kExtension:
    case hz::Kind::kSlot:
    case hz::Kind::kRun: return false;
#ifdef HZ_COMPLETE
    case hz::Kind::kInHeap: return true;
#endif
  }
  return false;
}
