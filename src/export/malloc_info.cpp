// SPDX-License-Identifier: Apache-2.0
//
// The GNU functions that describe and tune a heap: they describe and tune this one.
#include <algorithm>

#include "export/c_rules.hpp"
#include "os/gnu_malloc.hpp"

using hz::ThisHeap;
using hz::ThisLibrary;

namespace {

int clipped(size_t n) { return n > INT32_MAX ? INT32_MAX : static_cast<int>(n); }

}  // namespace

HZ_EXPORT int malloc_trim(size_t pad) { return ThisHeap::trim(pad) ? 1 : 0; }

HZ_EXPORT struct mallinfo2 mallinfo2() {
  const hz_stats_t s = ThisLibrary::stats();
  struct mallinfo2 info = {};
  // As the C library: what is huge stands apart, and is in no other field. Others may free a block meanwhile.
  info.hblks = ThisLibrary::huge_blocks();
  info.hblkhd = std::min(ThisLibrary::huge_bytes(), s.bytes_live);
  info.arena = s.bytes_held + s.bytes_dirty - info.hblkhd;
  info.ordblks =
      s.spans_acquired - s.spans_retired - std::min(info.hblks, s.spans_acquired - s.spans_retired);
  info.uordblks = s.bytes_live - info.hblkhd;
  info.fsmblks = s.bytes_cached;
  info.fordblks = s.bytes_cached + s.bytes_dirty;
  info.usmblks = s.bytes_peak;
  info.keepcost = s.bytes_dirty;
  return info;
}

HZ_EXPORT struct mallinfo mallinfo() {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo info = {};  // the same fields, but narrow
  const auto* from = reinterpret_cast<const size_t*>(&wide);
  for (int* to = &info.arena; to <= &info.keepcost;) *to++ = clipped(*from++);
  return info;
}

// The C library's own format, with the parts that have a counterpart here.
HZ_EXPORT int malloc_info(int options, FILE* stream) {
  if (options != 0) {
    errno = EINVAL;
    return -1;
  }
  const hz_stats_t s = ThisLibrary::stats();
  const int written =
      fprintf(stream,
              "<malloc version=\"1\">\n<heap nr=\"0\">\n"
              "<total type=\"rest\" count=\"%lu\" size=\"%lu\"/>\n"
              "<system type=\"current\" size=\"%lu\"/>\n<system type=\"max\" size=\"%lu\"/>\n"
              "<hakozuna line=\"%s\" version=\"%s\" live=\"%lu\" cached=\"%lu\" dirty=\"%lu\" "
              "metadata=\"%lu\" threads=\"%lu\"/>\n</heap>\n</malloc>\n",
              s.spans_acquired - s.spans_retired, s.bytes_cached + s.bytes_dirty,
              s.bytes_held + s.bytes_dirty, s.bytes_peak, hz::ThisLine::kName, HZ_VERSION, s.bytes_live,
              s.bytes_cached, s.bytes_dirty, s.bytes_metadata, s.threads);
  return written < 0 ? -1 : 0;
}

HZ_EXPORT void malloc_stats() { ThisLibrary::print_stats(hz::StatsFormat::kText); }

// One parameter has a counterpart: how much free memory may stay, in bytes; a negative one says all of it.
// The C library's others are about arenas and bins that are not here. They are hints, and are taken without
// effect: programs give up where mallopt answers 0, as it does here for what nobody knows.
HZ_EXPORT int mallopt(int parameter, int value) {
  constexpr size_t kAllOfIt = size_t{1} << 46;
  switch (parameter) {
    case M_TRIM_THRESHOLD:
      ThisLibrary::set_floor(value < 0 ? kAllOfIt : static_cast<size_t>(value));
      return 1;
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_MXFAST:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX: return 1;
    default: return 0;
  }
}
