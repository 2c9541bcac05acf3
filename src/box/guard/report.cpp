// SPDX-License-Identifier: Apache-2.0
//
// The words of the line that tells of a bad pointer: see report.hpp.
#include "box/guard/report.hpp"

#include "os/message.hpp"
#include "os/probe.hpp"

namespace hz {
namespace {

const char* name(Fault fault) {
  switch (fault) {
    case Fault::kForeign: return "E01 foreign-pointer";
    case Fault::kNotAllocated: return "E02 not-allocated";
    case Fault::kDoubleFree: return "E03 double-free";
    case Fault::kInterior: return "E04 interior-pointer";
    case Fault::kSizeMismatch: return "E05 size-mismatch";
    case Fault::kWriteAfterFree: return "E06 write-after-free";
    case Fault::kNoHeap: return "E07 no-heap";
    case Fault::kNone: break;
  }
  return "E00 none";
}

}  // namespace

HZ_COLD void FaultReport::send(Fault fault, const void* at, Bin bin, const char* line) {
  os::probe::fault(static_cast<unsigned>(fault), address(at));
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

}  // namespace hz
