// SPDX-License-Identifier: Apache-2.0
//
// What a run measured, and how it is printed: one JSON object on one line, the same fields for every family.
// A family fills what it counts; zero stands where a notion does not exist. The crew fills seconds and
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "lane/lane.hpp"
#include "lane/moments.hpp"
#include "support/probe.hpp"

#ifndef HZ_BENCH_FLAGS
#define HZ_BENCH_FLAGS "unknown"
#endif

namespace hz::bench {

// One point of "RSS over time", for lanes that are about it.
struct RssPoint {
  std::array<char, 24> label{};
  std::uint64_t kib = 0;
};

// How long calls of one kind took, for lanes that time each of them.
struct CallTimes {
  std::uint64_t calls = 0;
  double p50_ns = 0;
  double p99_ns = 0;
  double p999_ns = 0;
  double p9999_ns = 0;
  double longest_ns = 0;
};

struct Record {
  // Filled by the family.
  std::uint64_t ops = 0;
  std::uint64_t sends = 0;            // blocks handed to another thread
  std::uint64_t fallbacks = 0;        // blocks that should have been, and were freed at home instead
  std::uint64_t ring_high_water = 0;  // the longest backlog of blocks on their way to one thread
  std::uint64_t backlog_kib =
      0;  // of the most blocks that were on their way to all threads together, at least
  CallTimes allocate_times{};
  CallTimes release_times{};
  double clock_ns = 0;         // of each of these times, what reading the clock costs at least
  bool dirty = false;          // the run measured another workload than its name says
  bool touched = true;         // main sets it from the options; a family that does otherwise says so
  bool written = false;        // in full, likewise
  long settle_ms = kSettleMs;  // of the run, as the next
  long rest_ms = 0;

  // Filled by the crew and by main.
  double seconds = 0;
  std::uint64_t harness_kib = 0;
  std::uint64_t stacks_kib = 0;
  std::uint64_t rested_kib = 0;  // 0: not read
  Moments moments{};

  // Called by one thread at a time, between timed regions or as part of a lane's definition.
  void add_rss_point(const char* phase, unsigned round) {
    if (series_size_ == series_.size()) fail("more points of the RSS series than expected");
    RssPoint& point = series_[series_size_++];
    std::snprintf(point.label.data(), point.label.size(), "%s %u", phase, round);
    point.kib = rss_kib();
  }
  const RssPoint* series_begin() const { return series_.data(); }
  const RssPoint* series_end() const { return series_.data() + series_size_; }

 private:
  std::array<RssPoint, 64> series_{};
  std::size_t series_size_ = 0;
};

inline void print_text(std::FILE* out, std::string_view text) {
  std::fputc('"', out);
  for (const char c : text) {
    if (c == '"' || c == '\\') std::fputc('\\', out);
    if (static_cast<unsigned char>(c) >= 0x20) std::fputc(c, out);
  }
  std::fputc('"', out);
}

inline void print_text(std::FILE* out, const char* key, std::string_view text) {
  std::fprintf(out, "\"%s\":", key);
  print_text(out, text);
  std::fputc(',', out);
}

inline void print_number(std::FILE* out, const char* key, std::uint64_t number) {
  std::fprintf(out, "\"%s\":%llu,", key, static_cast<unsigned long long>(number));
}

inline void print_flag(std::FILE* out, const char* key, bool flag) {
  std::fprintf(out, "\"%s\":%s,", key, flag ? "true" : "false");
}

inline void print_definition(std::FILE* out, const Definition& definition) {
  std::fputs("\"definition\":{", out);
  for (const Parameter& parameter : definition) {
    if (&parameter != definition.begin()) std::fputc(',', out);
    print_text(out, parameter.key);
    std::fputc(':', out);
    if (parameter.text.empty()) {
      std::fprintf(out, "%llu", static_cast<unsigned long long>(parameter.number));
    } else {
      print_text(out, parameter.text);
    }
  }
  std::fputc('}', out);
}

inline void print_moments(std::FILE* out, const Moments& moments) {
  const char* comma = "";
  std::fputs("\"moments\":[", out);
  for (const Moment moment : moments.order()) {
    std::fprintf(out, "%s\"%s\"", comma, kMomentNames[static_cast<std::size_t>(moment)]);
    comma = ",";
  }
  std::fputs("],", out);
}

inline void print_series(std::FILE* out, const Record& record) {
  if (record.series_begin() == record.series_end()) return;
  std::fputs("\"rss_series_kib\":[", out);
  for (const RssPoint* point = record.series_begin(); point != record.series_end(); ++point) {
    std::fprintf(out, "%s[\"%s\",%llu]", point == record.series_begin() ? "" : ",", point->label.data(),
                 static_cast<unsigned long long>(point->kib));
  }
  std::fputs("],", out);
}

inline void print_times(std::FILE* out, const char* key, const CallTimes& times, const char* after) {
  std::fprintf(
      out,
      "\"%s\":{\"calls\":%llu,\"p50\":%.1f,\"p99\":%.1f,\"p99.9\":%.1f,\"p99.99\":%.1f,\"longest\":%.1f}%s",
      key, static_cast<unsigned long long>(times.calls), times.p50_ns, times.p99_ns, times.p999_ns,
      times.p9999_ns, times.longest_ns, after);
}

inline void print_latency(std::FILE* out, const Record& record) {
  if (record.allocate_times.calls == 0) return;
  std::fprintf(out, "\"latency_ns\":{\"clock\":%.1f,", record.clock_ns);
  print_times(out, "malloc", record.allocate_times, ",");
  print_times(out, "free", record.release_times, "},");
}

inline void print_memory(std::FILE* out, const Record& record) {
  const Moments& moments = record.moments;
  print_number(out, "rss_peak_kib", moments.peak_kib());
  print_number(out, "rss_idle_kib", moments.rss_kib(Moment::kIdle));
  if (record.rested_kib != 0) print_number(out, "rss_rested_kib", record.rested_kib);
  print_number(out, "rss_after_kib", moments.rss_kib(Moment::kAfter));
  print_number(out, "rss_empty_kib", moments.rss_kib(Moment::kEmpty));
  print_number(out, "harness_kib", record.harness_kib);
  print_number(out, "stacks_kib", record.stacks_kib);
}

// Of systems that count what is committed.
inline void print_committed(std::FILE* out, const Moments& moments) {
  if (moments.peak_committed_kib() == 0) return;
  std::fputs("\"committed_kib\":{", out);
  print_number(out, "peak", moments.peak_committed_kib());
  print_number(out, "idle", moments.committed_kib(Moment::kIdle));
  print_number(out, "after", moments.committed_kib(Moment::kAfter));
  std::fprintf(out, "\"empty\":%llu},",
               static_cast<unsigned long long>(moments.committed_kib(Moment::kEmpty)));
}

inline void print_usage(std::FILE* out, const Usage& usage) {
  std::fprintf(out, "\"minor_faults\":%ld,\"major_faults\":%ld,", usage.minor_faults, usage.major_faults);
  std::fprintf(out, "\"voluntary_switches\":%ld,\"involuntary_switches\":%ld,\"cpu_seconds\":%.6f,",
               usage.voluntary_switches, usage.involuntary_switches, usage.cpu_seconds);
}

inline void print_record(std::FILE* out, const Run& run, const Record& record) {
  if (!record.moments.complete()) fail("a moment of the run is missing");
  const AllocatorProbe allocator = probe_allocator();
  std::fputc('{', out);
  print_text(out, "lane", run.lane.name);
  print_text(out, "family", run.lane.family);
  print_text(out, "mode", run.mode == Mode::kFair ? "fair" : "upstream");
  print_number(out, "threads", run.threads);
  print_definition(out, run.lane.definition);
  std::fputc(',', out);
  print_flag(out, "touched", record.touched);
  print_flag(out, "written", record.written);
  print_number(out, "settle_ms", static_cast<std::uint64_t>(record.settle_ms));
  if (record.rest_ms != 0) print_number(out, "rest_ms", static_cast<std::uint64_t>(record.rest_ms));
  print_number(out, "seed", run.seed);
  print_number(out, "ops", record.ops);
  std::fprintf(out, "\"seconds\":%.9f,\"ops_per_s\":%.0f,", record.seconds,
               static_cast<double>(record.ops) / record.seconds);
  print_memory(out, record);
  print_committed(out, record.moments);
  print_number(out, "ring_high_water", record.ring_high_water);
  print_number(out, "backlog_kib", record.backlog_kib);
  print_number(out, "sends", record.sends);
  print_number(out, "fallbacks", record.fallbacks);
  print_flag(out, "dirty", record.dirty);
  print_moments(out, record.moments);
  print_series(out, record);
  print_latency(out, record);
  print_usage(out, record.moments.usage());
  print_text(out, "allocator", allocator.name);
  print_text(out, "allocator_file", allocator.file);
  print_text(out, "flags", HZ_BENCH_FLAGS);
  std::fprintf(out, "\"pid\":%ld}\n", static_cast<long>(getpid()));
}

}  // namespace hz::bench
