// SPDX-License-Identifier: Apache-2.0
//
// malloc_stats_print: the figures of jemalloc's interface for a reader, or as JSON. Called by programs that
// show them; begins an epoch, and the caller's function gets a line at a time, with no lock held.
#include "export/jemalloc/figures.hpp"
#include "os/message.hpp"

using hz::jemalloc::Figure;
using hz::jemalloc::Figures;
using hz::jemalloc::kVersion;

// What a program may set, for all that jemalloc would write: its own function, in place of stderr.
extern "C" {
__attribute__((visibility("default"))) void (*malloc_message)(void* opaque, const char* text) = nullptr;
}

namespace {

using Write = void (*)(void*, const char*);
using Line = hz::os::Message;

// As JSON names them, and as jemalloc's own line for readers does, which some programs look for.
struct Named {
  const char* name;
  const char* before;
  Figure figure;
};
constexpr Named kShown[] = {
    {"allocated", "Allocated: ", Figure::kAllocated}, {"active", ", active: ", Figure::kActive},
    {"metadata", ", metadata: ", Figure::kMetadata},  {"resident", ", resident: ", Figure::kResident},
    {"mapped", ", mapped: ", Figure::kMapped},        {"retained", ", retained: ", Figure::kRetained}};

void write_error(void*, const char* text) { hz::os::write_error(text, __builtin_strlen(text)); }

bool has(const char* options, char one) {
  return options != nullptr && __builtin_strchr(options, one) != nullptr;
}

void print_json(Write write, void* opaque) {
  write(opaque, Line().text("{\"jemalloc\":{\"version\":\"").text(kVersion).text("\",\"stats\":{").data());
  for (const Named& one : kShown) {
    const char* comma = one.figure == kShown[0].figure ? "\"" : ",\"";
    write(opaque, Line().text(comma).text(one.name).text("\":").decimal(Figures::of(one.figure)).data());
  }
  write(opaque, "}}}\n");
}

void print_text(Write write, void* opaque, const char* options) {
  write(opaque, "___ Begin jemalloc statistics ___\n");
  if (!has(options, 'g'))
    write(opaque,
          Line().text("Version: \"").text(kVersion).text("\", line ").text(hz_line()).text("\n").data());
  for (const Named& one : kShown)
    write(opaque, Line().text(one.before).decimal(Figures::of(one.figure)).data());
  write(opaque, "\n");
  if (!has(options, 'b')) {
    write(opaque, "size of slots, spans, slots out of their spans:\n");
    for (hz::Bin bin = 1; bin <= hz::kLastBin; ++bin) {
      if (Figures::spans(bin) == 0) continue;
      write(opaque, Line()
                        .decimal(hz::bin_size(bin))
                        .text(", ")
                        .decimal(Figures::spans(bin))
                        .text(", ")
                        .decimal(Figures::slots(bin))
                        .text("\n")
                        .data());
    }
    write(opaque, Line().text("huge blocks, bytes: ").decimal(Figures::of(Figure::kHuge)).text("\n").data());
  }
  write(opaque, "___ End jemalloc statistics ___\n");
}

}  // namespace

HZ_EXPORT void malloc_stats_print(Write write_cb, void* cbopaque, const char* opts) {
  const Write write = write_cb != nullptr         ? write_cb
                      : malloc_message != nullptr ? malloc_message
                                                  : &write_error;
  Figures::begin_epoch();
  has(opts, 'J') ? print_json(write, cbopaque) : print_text(write, cbopaque, opts);
}
