// SPDX-License-Identifier: Apache-2.0
//
// The command line of `lane`. Anything not understood, and any option that the lane has no use for, ends the
// program with status 2: a run that silently measured something else is worse than none.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "lane/catalogue.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

inline constexpr std::uint64_t kMaxThreads = 4096;
inline constexpr std::uint64_t kMaxSettleMs = 3'600'000;

[[noreturn]] inline void usage(std::string_view why) {
  std::fprintf(
      stderr,
      "lane: %.*s\n"
      "usage: lane --list\n"
      "       lane --lane NAME [--threads N] [--mode fair|upstream] [--iterations N] [--remote PERCENT]\n"
      "            [--untouched | --written] [--seed N] [--settle MILLISECONDS]\n"
      "            [--rest MILLISECONDS]\n",
      static_cast<int>(why.size()), why.data());
  std::exit(2);
}

inline std::uint64_t parse_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    std::fprintf(stderr, "lane: '%.*s' is not a number from %llu to %llu\n", static_cast<int>(text.size()),
                 text.data(), static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
    std::exit(2);
  }
  return value;
}

// What was said on the command line, before it meets the lane's definition.
struct Options {
  const Lane* lane = nullptr;
  std::optional<unsigned> threads{};
  std::optional<std::uint64_t> iterations{};
  std::optional<std::uint64_t> remote{};
  Mode mode = Mode::kFair;
  bool touch = true;
  bool written = false;
  std::uint64_t seed = Run{}.seed;
  long settle_ms = kSettleMs, rest_ms = 0;
};

inline void parse_option(Options& options, std::string_view key, std::string_view value) {
  if (key == "--lane") {
    options.lane = find_lane(value);
    if (options.lane == nullptr) usage("no such lane; --list shows them all");
  } else if (key == "--threads") {
    options.threads = static_cast<unsigned>(parse_number(value, 1, kMaxThreads));
  } else if (key == "--mode") {
    if (value != "fair" && value != "upstream") usage("--mode is fair or upstream");
    options.mode = value == "fair" ? Mode::kFair : Mode::kUpstream;
  } else if (key == "--iterations") {
    options.iterations = parse_number(value, 1, UINT64_MAX);
  } else if (key == "--remote") {
    options.remote = parse_number(value, 0, 100);
  } else if (key == "--seed") {
    options.seed = parse_number(value, 0, UINT64_MAX);
  } else if (key == "--settle") {
    options.settle_ms = static_cast<long>(parse_number(value, 1, kMaxSettleMs));
  } else if (key == "--rest") {
    options.rest_ms = static_cast<long>(parse_number(value, 1, kMaxSettleMs));
  } else {
    usage("unknown option");
  }
}

inline Run apply(const Options& options) {
  if (options.lane == nullptr) usage("--lane is missing");
  const Lane& lane = *options.lane;
  if (options.mode == Mode::kUpstream && !lane.upstream) usage("this lane has no upstream mode");
  if (lane.threads == 0 && !options.threads) usage("--threads is missing");
  if (lane.threads != 0 && options.threads.value_or(lane.threads) != lane.threads) {
    usage("the number of threads is part of this lane's definition");
  }
  Run run{.lane = lane,
          .threads = lane.threads != 0 ? lane.threads : *options.threads,
          .mode = options.mode,
          .touch = options.touch,
          .written = options.written,
          .seed = options.seed,
          .settle_ms = options.settle_ms,
          .rest_ms = options.rest_ms};
  Definition& definition = run.lane.definition;
  if (options.iterations) {
    if (!definition.has(run.iterations_key())) usage("this lane has no iterations");
    definition.set(run.iterations_key(), *options.iterations);
  }
  if (options.written) {
    if (!options.touch) usage("--untouched and --written exclude each other");
    if (!definition.has("remote_percent")) usage("blocks of this lane are not written in full");
    if (options.mode == Mode::kUpstream) usage("the published programs did not write their blocks in full");
  }
  if (options.remote) {
    if (!definition.has("remote_percent")) usage("this lane has no remote share");
    definition.set("remote_percent", *options.remote);
  }
  return run;
}

inline Run parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view key = argv[i];
    if (key == "--untouched") {
      options.touch = false;
      continue;
    }
    if (key == "--written") {
      options.written = true;
      continue;
    }
    if (++i == argc) usage("an option without a value, or an unknown one");
    parse_option(options, key, argv[i]);
  }
  return apply(options);
}

}  // namespace hz::bench
