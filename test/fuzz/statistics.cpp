// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the writer of the statistics line, and the words that all messages are made of. Whatever the
// numbers, the line is whole: as text one key=value a word, as JSON one object on one line; and no word of
// any text passes the room that it has.
#include <cstring>
#include <string>

#include "heap/settings/stats_line.hpp"
#include "input.hpp"

namespace hz_test::fuzz {
namespace {

std::size_t count(const std::string& text, const char* what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

void line(const hz_stats_t& stats, hz::StatsFormat format, bool incomplete) {
  hz::os::LongMessage message;
  hz::compose_stats(message, "hakozuna", stats, format, incomplete);
  const std::string text(message.data(), message.size());
  constexpr std::size_t kFields = sizeof(hz_stats_t) / sizeof(std::uint64_t);
  const bool json = format == hz::StatsFormat::kJson;
  expect(text.ends_with(json ? "}\n" : "\n") && count(text, "\n") == 1, "the line is cut off");
  expect(count(text, json ? "\":" : "=") == kFields + 5 + (json ? 1 : 0) + (incomplete ? 1 : 0),
         "a field is missing");
  expect(!json || (count(text, "\"") % 2 == 0 && count(text, "{") == 1), "it is no JSON");
  std::uint64_t last = 0;
  std::memcpy(&last, reinterpret_cast<const char*>(&stats) + sizeof stats - sizeof last, sizeof last);
  expect(
      text.find((json ? "\"preset_moves\":" : "preset_moves=") + std::to_string(last)) != std::string::npos,
      "a number is another one");
}

void words(Input input) {
  const std::size_t room = input.byte();
  char at[256 + 8];
  std::memset(at, '#', sizeof at);
  hz::os::TextInto text(at, room);
  while (!input.empty()) {
    const unsigned what = input.byte();
    char word[16] = {};
    for (unsigned i = 0; i + 1 < sizeof word && i < what / 8; ++i) word[i] = static_cast<char>(input.byte());
    switch (what % 6) {
      case 0: text.text(word); break;
      case 1: text.part(word, sizeof word); break;
      case 2: text.word(word); break;
      case 3: text.name(word); break;
      case 4: text.decimal(input.number(8)); break;
      default: text.hex(input.number(8)); break;
    }
  }
  expect(text.size() < (room == 0 ? 1 : room), "a text is longer than its room");
  expect(room == 0 || at[text.size()] == 0, "a text does not end");
  for (std::size_t i = room; i < sizeof at; ++i)
    expect(at[i] == '#', "something was written behind the room");
}

}  // namespace
}  // namespace hz_test::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hz_test::fuzz;
  hz_stats_t stats{};
  std::memcpy(&stats, data, size < sizeof stats ? size : sizeof stats);
  for (const bool incomplete : {false, true}) {
    line(stats, hz::StatsFormat::kText, incomplete);
    line(stats, hz::StatsFormat::kJson, incomplete);
  }
  words(Input(data, size));
  return 0;
}
