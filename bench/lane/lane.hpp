// SPDX-License-Identifier: Apache-2.0
//
// What a lane is: a name, the family whose program part runs it, and its definition as flat keys and values.
// The table of each family (FAMILY/lanes.hpp) is made of these; `lane --list` and every record print them as
// they stand, so a reader can tell from a record alone what was run. Looked up before and after measuring,
// never within.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace hz::bench {

// The harness cannot go on: a record of such a run would be worth nothing.
[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "lane: %s\n", what);
  std::_Exit(3);
}

// fair: the one to judge by. upstream: the published shape with its flaws (generator, counting, loose start
// and end).
enum class Mode { kUpstream, kFair };

// A number, or a text where `text` is not empty.
struct Parameter {
  constexpr Parameter() = default;
  constexpr Parameter(std::string_view k, std::uint64_t n) : key(k), number(n) {}
  constexpr Parameter(std::string_view k, std::string_view t) : key(k), text(t) {}
  std::string_view key;
  std::uint64_t number = 0;
  std::string_view text;
};

class Definition {
 public:
  constexpr Definition() = default;
  constexpr Definition(std::initializer_list<Parameter> parameters) {
    for (const Parameter& parameter : parameters)
      parameters_[size_++] = parameter;  // too many: does not compile
  }

  constexpr const Parameter* begin() const { return parameters_.data(); }
  constexpr const Parameter* end() const { return parameters_.data() + size_; }

  constexpr bool has(std::string_view key) const { return find(key) < size_; }

  // A key that is not there is a mistake in a family's code, not in its user's options.
  constexpr std::uint64_t operator[](std::string_view key) const {
    const std::size_t at = find(key);
    if (at == size_) fail("a definition lacks the number that its family asks for");
    return parameters_[at].number;
  }

  constexpr std::string_view text(std::string_view key) const {
    const std::size_t at = find(key);
    if (at == size_) fail("a definition lacks the text that its family asks for");
    return parameters_[at].text;
  }

  constexpr void set(std::string_view key, std::uint64_t number) { parameters_[find(key)].number = number; }

 private:
  constexpr std::size_t find(std::string_view key) const {
    std::size_t at = 0;
    while (at < size_ && parameters_[at].key != key) ++at;
    return at;
  }

  std::array<Parameter, 12> parameters_{};
  std::size_t size_ = 0;
};

struct Lane {
  std::string_view name;
  std::string_view family;
  unsigned threads = 0;   // 0: the caller chooses
  bool upstream = false;  // has the mode `upstream` beside `fair`
  bool guard = false;     // no change to an allocator may lose here
  Definition definition{};
};

inline constexpr long kSettleMs = 50;

// What to run: a lane with the options applied.
struct Run {
  Lane lane{};
  unsigned threads = 0;
  Mode mode = Mode::kFair;
  bool touch = true;
  bool written = false;  // blocks are written in full; only lanes that hand blocks over offer it
  std::uint64_t seed = 0x12345678;
  long settle_ms = kSettleMs;  // before memory is read idle, and again before it is read after
  long rest_ms = 0;  // from when it is read at the end to when it is read idle once more; 0: it is not

  // The key of the definition that says how long a run is: a published shape may have a number of iterations
  // of its own, and some lanes end by time.
  constexpr std::string_view iterations_key() const {
    constexpr std::string_view kUpstreamKey = "iterations_upstream";
    if (mode == Mode::kUpstream && lane.definition.has(kUpstreamKey)) return kUpstreamKey;
    return lane.definition.has("milliseconds") ? "milliseconds" : "iterations";
  }
  constexpr std::uint64_t iterations() const { return lane.definition[iterations_key()]; }
  constexpr std::uint32_t number(std::string_view key) const {
    return static_cast<std::uint32_t>(lane.definition[key]);
  }
};

}  // namespace hz::bench
