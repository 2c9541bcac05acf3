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
    case Fault::kUseAfterFree: return "E08 use-after-free";
    case Fault::kOutOfBounds: return "E09 out-of-bounds";
    case Fault::kNone: break;
  }
  return "E00 none";
}

constexpr unsigned kMostKept = 16;
constinit std::atomic<std::uintptr_t> kept[kMostKept];
constinit std::atomic<bool> more_kept{false};

bool is_kept(std::uintptr_t at) {
  bool found = more_kept.load(std::memory_order_relaxed);
  for (const std::atomic<std::uintptr_t>& one : kept) found |= one.load(std::memory_order_relaxed) == at;
  return found;
}

// A program that deletes objects by a type of another size does so at each of them, and would fill its log.
constexpr unsigned kMostSurvived = 16;
constinit std::atomic<unsigned> survived{0};

// Counts a size mismatch that the program survives; returns its number, or 0 if it is not to be reported.
unsigned next_survived() {
  unsigned before = survived.load(std::memory_order_relaxed);
  while (before < kMostSurvived) {
    if (survived.compare_exchange_weak(before, before + 1, std::memory_order_relaxed)) return before + 1;
  }
  return 0;
}

// A separate function, for the stack as below.
HZ_COLD void send_last_survived() {
  os::Message message;
  message.text("hz: warning: E05 size-mismatch: ")
      .decimal(kMostSurvived)
      .text(" reported; later ones of this process are not\n");
  message.send();
}

// A separate function: a message takes 700 bytes of the stack.
HZ_COLD void send_line(Fault fault, const void* at, Bin bin, const char* line, bool fatal) {
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
}
}  // namespace

HZ_COLD void FaultReport::keep(const void* block) {
  const std::uintptr_t at = address(block);
  for (std::atomic<std::uintptr_t>& one : kept) {
    std::uintptr_t before = one.load(std::memory_order_relaxed);
    if (before == 0 && one.compare_exchange_strong(before, at, std::memory_order_relaxed)) return;
    if (before == at) return;
  }
  more_kept.store(true, std::memory_order_relaxed);
}

HZ_COLD void FaultReport::tell(Fault fault, const void* at, Bin bin, const char* line, std::uintptr_t code,
                               bool fatal) {
  os::probe::fault(static_cast<unsigned>(fault), address(at));
  send_line(fault, at, bin, line, fatal);
  // Acquire: pairs with its store.
  if (const Explain more = explain.load(std::memory_order_acquire)) more(address(at), code);
  if (fatal) ending.store(true, std::memory_order_relaxed);
}

HZ_COLD void FaultReport::send(Fault fault, const void* at, Bin bin, const char* line, Seen seen,
                               bool strict) {
  if (fault == Fault::kSizeMismatch && is_kept(address(at))) return;
  const bool fatal = is_fatal(strict ? Fault::kForeign : fault);
  const bool survives = !fatal && on_invalid.load(std::memory_order_relaxed) == OnInvalid::kAbort;
  const unsigned number = survives ? next_survived() : 1;
  if (number == 0) {
    os::probe::fault(static_cast<unsigned>(fault), address(at));
    return;
  }
  {
    os::Report report(seen != Seen::kWithLock);
    tell(fault, at, bin, line, 0, fatal);
    // For the calls files are read, and a process is made. A program that survives an E05 by default may run
    // under a filter that kills it for that.
    if (!survives) report.tell_calls(seen == Seen::kNow ? "called from" : "noticed in");
    if (survives && number == kMostSurvived) send_last_survived();
  }
  if (fatal) os::abort_process();
}

}  // namespace hz
