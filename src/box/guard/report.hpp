// SPDX-License-Identifier: Apache-2.0
//
// The one line that tells the user of a bad pointer, and the end of the program if it is to end. Called by
// every guard.
#pragma once

#include <atomic>

#include "box/guard/contract.hpp"
#include "os/message.hpp"

namespace hz {

struct FaultReport {
  enum class OnInvalid { kAbort, kReport };
  static inline constinit std::atomic<OnInvalid> on_invalid{OnInvalid::kAbort};

  static bool is_fatal(Fault fault) {
    return fault != Fault::kSizeMismatch && on_invalid.load(std::memory_order_relaxed) == OnInvalid::kAbort;
  }

  // A report has gone out that the program does not survive, unless its handler of SIGABRT leaves by a jump.
  static bool is_ending() { return ending.load(std::memory_order_relaxed); }

  HZ_COLD static void send(Fault fault, const void* at, Bin bin, const char* line) {
    const bool fatal = is_fatal(fault);
    os::Message message;
    message.text(fatal ? "hz: fatal: " : "hz: error: ")
        .text(name(fault))
        .text(" ptr=0x")
        .hex(address(at))
        .text(" class=");
    if (bin == 0 || bin > kLastBin) {
      message.text("-");
    } else {
      message.decimal(bin_size(bin));
    }
    message.text(" line=").text(line).text(" thread=").decimal(os::thread_id()).text("\n");
    message.send();
    if (!fatal) return;
    ending.store(true, std::memory_order_relaxed);
    os::abort_process();
  }

 private:
  static inline constinit std::atomic<bool> ending{false};

  static const char* name(Fault fault) {
    switch (fault) {
      case Fault::kForeign: return "E01 foreign-pointer";
      case Fault::kNotAllocated: return "E02 not-allocated";
      case Fault::kDoubleFree: return "E03 double-free";
      case Fault::kInterior: return "E04 interior-pointer";
      case Fault::kSizeMismatch: return "E05 size-mismatch";
      case Fault::kWriteAfterFree: return "E06 write-after-free";
      case Fault::kNone: break;
    }
    return "E00 none";
  }
};

}  // namespace hz
