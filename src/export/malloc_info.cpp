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

struct mallinfo2 describe(const hz_stats_t& s) {
  struct mallinfo2 info = {};
  // As the C library: what is huge stands apart, and is in no other field. Others may free a block meanwhile.
  info.hblks = ThisLibrary::huge_blocks();
  info.hblkhd = std::min(ThisLibrary::huge_bytes(), s.bytes_live);
  info.arena = s.bytes_held + s.bytes_dirty - info.hblkhd;
  info.ordblks =
      s.spans_acquired - s.spans_retired - std::min(ThisLibrary::runs(), s.spans_acquired - s.spans_retired);
  info.uordblks = s.bytes_live - info.hblkhd;
  info.fsmblks = s.bytes_cached;
  info.fordblks = s.bytes_cached + s.bytes_dirty;
  info.usmblks = s.bytes_peak;
  info.keepcost = s.bytes_dirty;
  return info;
}

// The elements that the C library writes for each heap, and once more for all of them.
bool write_totals(FILE* stream, const struct mallinfo2& info) {
  const size_t most = std::max(info.arena + info.hblkhd, info.usmblks) - info.hblkhd;
  return fprintf(stream,
                 "<total type=\"fast\" count=\"0\" size=\"%zu\"/>\n"
                 "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
                 "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
                 "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
                 "<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n",
                 info.fsmblks, info.ordblks, info.fordblks - info.fsmblks, info.hblks, info.hblkhd,
                 info.arena, most, info.arena, info.arena) >= 0;
}

}  // namespace

HZ_EXPORT int malloc_trim(size_t pad) { return ThisHeap::trim(pad) ? 1 : 0; }

HZ_EXPORT struct mallinfo2 mallinfo2() { return describe(ThisLibrary::stats()); }

HZ_EXPORT struct mallinfo mallinfo() {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo info = {};  // the same fields, but narrow
  const auto* from = reinterpret_cast<const size_t*>(&wide);
  for (int* to = &info.arena; to <= &info.keepcost;) *to++ = clipped(*from++);
  return info;
}

// The C library's own format: one heap, and the totals of all heaps beside it, where parsers look for them.
// Cached bytes are "fast", other free bytes "rest"; huge blocks are "mmap", and in no other element.
HZ_EXPORT int malloc_info(int options, FILE* stream) {
  if (options != 0) {
    errno = EINVAL;
    return -1;
  }
  const hz_stats_t s = ThisLibrary::stats();
  const struct mallinfo2 info = describe(s);
  const bool written =
      fprintf(stream, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n") >= 0 &&
      write_totals(stream, info) &&
      fprintf(stream,
              "<hakozuna line=\"%s\" version=\"%s\" live=\"%lu\" cached=\"%lu\" dirty=\"%lu\" "
              "metadata=\"%lu\" threads=\"%lu\"/>\n</heap>\n",
              hz::ThisLine::kName, HZ_VERSION, s.bytes_live, s.bytes_cached, s.bytes_dirty, s.bytes_metadata,
              s.threads) >= 0 &&
      write_totals(stream, info) && fprintf(stream, "</malloc>\n") >= 0;
  return written ? 0 : -1;
}

HZ_EXPORT void malloc_stats() { ThisLibrary::print_stats(hz::StatsFormat::kText); }

// One parameter has a counterpart: how much free memory may stay, in bytes; a negative one says all of it.
// The C library's others are about arenas and bins that are not here. They are hints, and are accepted
// without effect, because programs give up if mallopt returns 0. It returns 0 for unknown parameters.
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
