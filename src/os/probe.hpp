// SPDX-License-Identifier: Apache-2.0
//
// Probes: places that a debugger or a tracer may watch from outside of the process, by name (doc/observe.md).
// Each is one instruction that does nothing, and a note in the library that says where it is and in which
// registers its two numbers are; the format is that of SystemTap (.note.stapsdt, version 3), which gdb, perf,
// bpftrace and others read. Called by the heap and by boxes on slow paths, with numbers that are at hand;
// costs that instruction, and what it takes to have the numbers in registers. Where libraries have no such
// notes there are no probes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.hpp"

namespace hz::os::probe {

// The note stands in the group of the function that it is about ("?"), so that a linker that drops one of two
// copies of a function drops its note, too. A reader that finds the section .stapsdt.base elsewhere than the
// note says adds the difference: prelink moves libraries, but changes no notes. The last of the three words
// is for a probe that knows whether it is watched; ours do not.
#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
#define HZ_PROBE(name, first, second)                                         \
  __asm__ volatile(                                                           \
      "990: nop\n"                                                            \
      ".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
      ".balign 4\n"                                                           \
      ".4byte 992f-991f, 994f-993f, 3\n"                                      \
      "991: .asciz \"stapsdt\"\n"                                             \
      "992: .balign 4\n"                                                      \
      "993: .8byte 990b, _.stapsdt.base, 0\n"                                 \
      ".asciz \"hakozuna\"\n"                                                 \
      ".asciz \"" name                                                        \
      "\"\n"                                                                  \
      ".asciz \"8@%0 8@%1\"\n"                                                \
      "994: .balign 4\n"                                                      \
      ".popsection\n"                                                         \
      ".ifndef _.stapsdt.base\n"                                              \
      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
      ".weak _.stapsdt.base\n"                                                \
      ".hidden _.stapsdt.base\n"                                              \
      "_.stapsdt.base: .space 1\n"                                            \
      ".size _.stapsdt.base, 1\n"                                             \
      ".popsection\n"                                                         \
      ".endif\n" ::"nr"(static_cast<std::uint64_t>(first)),                   \
      "nr"(static_cast<std::uint64_t>(second)))
#else
#define HZ_PROBE(name, first, second) (static_cast<void>(first), static_cast<void>(second))
#endif

// A thread has got so many slots of that size from the heap, or gave them back.
HZ_INLINE void refill(std::size_t slot_bytes, std::size_t slots) { HZ_PROBE("refill", slot_bytes, slots); }
HZ_INLINE void flush(std::size_t slot_bytes, std::size_t slots) { HZ_PROBE("flush", slot_bytes, slots); }

// Memory for slots of one size or for one huge block came into use, or is free again.
HZ_INLINE void span_acquired(std::uintptr_t at, std::size_t bytes) { HZ_PROBE("span_acquired", at, bytes); }
HZ_INLINE void span_retired(std::uintptr_t at, std::size_t bytes) { HZ_PROBE("span_retired", at, bytes); }

// The system has these pages back: one system call.
HZ_INLINE void purge(std::uintptr_t at, std::size_t bytes) { HZ_PROBE("purge", at, bytes); }

// A bad pointer is about to be reported: the number in E01 to E09.
HZ_INLINE void fault(unsigned code, std::uintptr_t at) { HZ_PROBE("fault", code, at); }

// The heap asked for so many bytes more than it may have. Soft: caches are returned, or free pages purged,
// and it may have them; hard: it may not.
enum class Limit : unsigned { kSoft = 1, kHard = 2 };
HZ_INLINE void limit(Limit which, std::size_t bytes) { HZ_PROBE("limit", which, bytes); }

#undef HZ_PROBE

}  // namespace hz::os::probe
