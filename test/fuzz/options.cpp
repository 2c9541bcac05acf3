// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: what the user says of the knobs. The first line is HZ_OPTIONS, each other one the value of a
// variable, by number. Whatever is said is told again as it would be said, and lies within the bounds that
// are written beside it.
#include <cstdlib>
#include <string>

#include "heap/settings/options.hpp"
#include "input.hpp"
#include "os/message.hpp"

namespace hz_test::fuzz {
namespace {

std::string told(const hz::Options::Knob& knob, const hz::Options& options) {
  char room[1100];
  hz::os::TextInto text(room, sizeof room);
  knob.tell(options, text);
  return {room, text.size()};
}

std::string line_of(Input& input) {
  std::string line;
  while (!input.empty()) {
    const char c = static_cast<char>(input.byte());
    if (c == '\n') break;
    if (c != 0) line += c;
  }
  return line;
}

}  // namespace
}  // namespace hz_test::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hz_test::fuzz;
  using hz::Options;
  Input input(data, size);
  setenv("HZ_OPTIONS", line_of(input).c_str(), 1);
  for (const Options::Knob& knob : Options::kKnobs) unsetenv(knob.variable);
  while (!input.empty()) {
    const unsigned number = input.byte() % (std::size(Options::kKnobs) + 1);
    const std::string value = line_of(input);
    setenv(number < std::size(Options::kKnobs) ? Options::kKnobs[number].variable : "HZ_UNHEARD_OF",
           value.c_str(), 1);
  }
  Options options;
  options.read();
  const Options unsaid;
  for (const Options::Knob& knob : Options::kKnobs) {
    const std::string said = told(knob, options);
    if (said == told(knob, unsaid)) continue;
    Options again;
    expect(knob.set(again, {said.data(), said.size()}), "what a knob tells is not understood");
    expect(told(knob, again) == said, "what a knob tells is another value");
  }
  constexpr std::size_t kCache = std::size_t{4} << 30, kLimit = std::size_t{1} << 44;
  expect(options.thread_cache <= kCache &&
             (options.retain_floor <= kCache || options.retain_floor == hz::RetainSettings::kUsual),
         "a knob of bytes is beyond its bounds");
  expect(options.retain == 0 || (options.retain >= 100 && options.retain <= 1000),
         "retain is beyond its bounds");
  for (const hz::MemoryLimit& limit : {options.limit_soft, options.limit_hard})
    expect(limit.percent <= 100 && limit.bytes <= kLimit && (limit.bytes == 0 || limit.bytes >= 1 << 20),
           "a limit is beyond its bounds");
  expect(options.cap.looks <= 4096 && options.cap.busy <= 1024 && options.cap.purger <= 1024,
         "a bound is beyond its own");
  return 0;
}
