// SPDX-License-Identifier: Apache-2.0
//
// The command line of `ring`. Anything not understood ends the program with status 2: a run that silently measured
// something else is worse than none.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ring/churn.hpp"
#include "ring/lanes.hpp"

namespace hz::bench {

struct Options {
  Lane lane{};  // with --iterations and --remote applied
  unsigned threads = 0;
  Mode mode = Mode::kFair;
  bool touch = true;
  std::uint64_t seed = 0x12345678;
};

inline constexpr std::uint64_t kMaxThreads = 4096;

[[noreturn]] inline void usage(std::string_view why) {
  std::fprintf(stderr,
               "ring: %.*s\n"
               "usage: ring --lane NAME --threads N [--mode fair|upstream] [--iterations N per thread]\n"
               "            [--remote PERCENT] [--untouched] [--seed N]\n"
               "lanes:",
               static_cast<int>(why.size()), why.data());
  for (const Lane& lane : kLanes) std::fprintf(stderr, " %.*s", static_cast<int>(lane.name.size()), lane.name.data());
  std::fputc('\n', stderr);
  std::exit(2);
}

inline std::uint64_t parse_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    std::fprintf(stderr, "ring: '%.*s' is not a number from %llu to %llu\n", static_cast<int>(text.size()), text.data(),
                 static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
    std::exit(2);
  }
  return value;
}

inline Options parse_options(int argc, char** argv) {
  Options options;
  std::uint64_t iterations = 0;
  std::uint64_t remote = 101;
  for (int i = 1; i < argc; ++i) {
    const std::string_view key = argv[i];
    if (key == "--untouched") {
      options.touch = false;
      continue;
    }
    if (++i == argc) usage("an option without a value, or an unknown one");
    const std::string_view value = argv[i];
    if (key == "--lane") {
      const Lane* lane = find_lane(value);
      if (lane == nullptr) usage("no such lane");
      options.lane = *lane;
    } else if (key == "--threads") {
      options.threads = static_cast<unsigned>(parse_number(value, 1, kMaxThreads));
    } else if (key == "--mode") {
      if (value != "fair" && value != "upstream") usage("--mode is fair or upstream");
      options.mode = value == "fair" ? Mode::kFair : Mode::kUpstream;
    } else if (key == "--iterations") {
      iterations = parse_number(value, 1, UINT64_MAX);
    } else if (key == "--remote") {
      remote = parse_number(value, 0, 100);
    } else if (key == "--seed") {
      options.seed = parse_number(value, 0, UINT64_MAX);
    } else {
      usage("unknown option");
    }
  }
  if (options.lane.name.empty()) usage("--lane is missing");
  if (options.threads == 0) usage("--threads is missing");
  if (iterations != 0) options.lane.iterations = iterations;
  if (remote <= 100) options.lane.remote_percent = static_cast<std::uint32_t>(remote);
  if (options.mode == Mode::kUpstream) options.touch = false;
  return options;
}

}  // namespace hz::bench
