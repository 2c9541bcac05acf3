// SPDX-License-Identifier: Apache-2.0
//
// The words of the statistics line: see stats_line.hpp.
#include "heap/settings/stats_line.hpp"

#include "base/compiler.hpp"

namespace hz {
namespace {

constexpr std::size_t kFields = sizeof(hz_stats_t) / sizeof(std::uint64_t);
constexpr const char* kNames[] = {
    "counting",       "alloc_small",   "alloc_medium",   "alloc_large",  "free_small",       "free_medium",
    "free_large",     "refills",       "flushes",        "remote_sent",  "remote_collected", "remote_waiting",
    "spans_acquired", "spans_retired", "purges",         "bytes_held",   "bytes_live",       "bytes_cached",
    "bytes_dirty",    "bytes_purged",  "bytes_metadata", "bytes_peak",   "threads",          "revocations",
    "remote_refused", "classes_dealt", "policy_tight",   "policy_turns", "preset_moves"};
static_assert(sizeof kNames / sizeof kNames[0] == kFields);

}  // namespace

os::LongMessage& compose_stats(os::LongMessage& m, const char* line, const hz_stats_t& s, StatsFormat format,
                               bool incomplete) {
  const bool json = format == StatsFormat::kJson;
  m.text(json ? "{\"hz\":\"stats\",\"line\":\"" : "hz: stats line=").text(line);
  m.text(json ? "\",\"version\":\"" : " version=").text(HZ_VERSION);
  m.text(json ? "\",\"build\":\"" : " build=").text(kBuildKind).text("/").word(kCompiler);
  m.text(json ? "\",\"pid\":" : " pid=").decimal(os::process_id());
  m.text(json ? ",\"program\":\"" : " program=").name(os::program_name()).text(json ? "\"" : "");
  if (incomplete) m.text(json ? ",\"incomplete\":1" : " incomplete=1");
  const auto* values = reinterpret_cast<const std::uint64_t*>(&s);
  for (std::size_t i = 0; i < kFields; ++i) {
    m.text(json ? ",\"" : " ").text(kNames[i]).text(json ? "\":" : "=").decimal(values[i]);
  }
  return m.text(json ? "}\n" : "\n");
}

}  // namespace hz
