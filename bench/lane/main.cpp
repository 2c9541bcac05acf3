// SPDX-License-Identifier: Apache-2.0
//
// The program `lane`: runs one lane once under whatever allocator the process has, and prints one JSON record
// on one line; or lists all lanes as one JSON array. Started with LD_PRELOAD by the tools that compare, or by
// hand.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "blocks/blocks.hpp"
#include "classic/classic.hpp"
#include "interleaved/interleaved.hpp"
#include "lane/catalogue.hpp"
#include "lane/crew.hpp"
#include "lane/lane.hpp"
#include "lane/options.hpp"
#include "lane/record.hpp"
#include "latency/latency.hpp"
#include "ring/ring.hpp"
#include "solo/solo.hpp"

namespace hz::bench {
namespace {

struct Family {
  std::string_view name;
  void (*run)(const Run& run, Record& record);
};

constexpr Family kFamilies[] = {
    {"ring", run_ring},     {"interleaved", run_interleaved}, {"solo", run_solo},
    {"blocks", run_blocks}, {"classic", run_classic},         {"latency", run_latency},
};

constexpr const Family* find_family(std::string_view name) {
  const Family* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                     [name](const Family& family) { return family.name == name; });
  return found != std::end(kFamilies) ? found : nullptr;
}

constexpr bool every_lane_has_its_family() {
  for (const std::span<const Lane> lanes : kCatalogue) {
    for (const Lane& lane : lanes) {
      if (find_family(lane.family) == nullptr) return false;
    }
  }
  return true;
}
static_assert(every_lane_has_its_family());

void print_lane(const Lane& lane) {
  std::fputc('{', stdout);
  print_text(stdout, "lane", lane.name);
  print_text(stdout, "family", lane.family);
  print_number(stdout, "threads", lane.threads);
  std::printf("\"modes\":[\"fair\"%s],", lane.upstream ? ",\"upstream\"" : "");
  print_flag(stdout, "guard", lane.guard);
  print_definition(stdout, lane.definition);
  std::fputc('}', stdout);
}

void print_list() {
  const char* before = "[";
  for (const std::span<const Lane> lanes : kCatalogue) {
    for (const Lane& lane : lanes) {
      std::fputs(before, stdout);
      print_lane(lane);
      before = ",\n";
    }
  }
  std::fputs("]\n", stdout);
}

void run_lane(const Run& run) {
  Record record;
  record.touched = run.touch;
  record.settle_ms = run.settle_ms;
  record.rest_ms = run.rest_ms;
  record.moments.read(Moment::kEmpty, 0);
  find_family(run.lane.family)->run(run, record);
  sleep_ms(run.settle_ms);
  record.moments.read(Moment::kAfter, 0);
  print_record(stdout, run, record);
}

}  // namespace
}  // namespace hz::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    hz::bench::print_list();
  } else {
    hz::bench::run_lane(hz::bench::parse_options(argc, argv));
  }
  return std::fflush(stdout) == 0 ? 0 : 3;
}
